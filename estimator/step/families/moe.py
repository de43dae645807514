"""Decoders with experts as feed-forward blocks: each a known attention, a router and a block of experts."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from estimator.step import experts, latent, routers
from estimator.step.attention import rotate
from estimator.step.families import blocks, ernie4_5, granite, hunyuan, llama
from estimator.step.families.llama import Shared
from estimator.step.families.rotary import partial
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.routers import Router, fact
from estimator.step.tape import BOOL, Tensor
from estimator.step.written import by_token

Block = Callable[[Model, Layer, Tensor, Router], Tensor]


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Llama's, with norms of queries and keys where the model has them, turned wholly or in part."""
    arch = model.arch
    q = normed(layer, x, "q", arch.heads, whole=arch.qk_norm_full)
    k = normed(layer, x, "k", arch.kv_heads, whole=arch.qk_norm_full)
    v = layer.linear(x, layer.module_of("v_proj"))
    cut = arch.model_type in CUTTING
    if cut:
        q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    else:
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return llama.attended(model, layer, q, k, v, around, by_head=cut)


def normed(layer: Layer, x: Tensor, letter: str, heads: int, *, whole: bool) -> Tensor:
    """Queries or keys as a view by heads, with their norm where the model has one: before it the ``whole`` width's."""
    out = layer.linear(x, layer.module_of(f"{letter}_proj"))
    norm = layer.module_of(f"{letter}_norm")
    if norm and whole:
        return by_token(layer.rms_norm(out, norm))
    out = by_token(out)
    return layer.rms_norm(out, norm, heads) if norm else out


CUTTING = frozenset({"minimax_m2"})
"""Types that cut queries and keys into a rotary part and the rest, even where the rest is empty."""


def attention_in_part(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Only the first elements of each head are turned (GLM-4.5); all three projections come before the norms."""
    arch = model.arch
    q, k, v = llama.projected(layer, x)
    if arch.qk_norm:
        q = layer.rms_norm(q, layer.module_of("q_norm"), 1 if arch.qk_norm_full else arch.heads)
        k = layer.rms_norm(k, layer.module_of("k_norm"), 1 if arch.qk_norm_full else arch.kv_heads)
    q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    k, v = layer.cached(k, v)
    return llama.attended(model, layer, q, k, v, around, by_head=True)


def latent_attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """DeepSeek-V3's attention."""
    rotation = latent.rotate_pairs if fact(model, "rope_interleave", True) else latent.rotate_halves
    return latent.attention(model, layer, x, (around.cos, around.sin), around.mask(layer), rotation)


def complex_attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """DeepSeek-V2's attention."""
    return latent.attention(model, layer, x, (around.cos, around.sin), around.mask(layer), latent.rotate_complex)


@dataclass(frozen=True)
class Mixture:
    """How one class puts its layer together; ``base`` gives what surrounds the layers."""

    router: Router
    block: Block = experts.block
    attention: blocks.Attention = attention
    base: ModuleType = llama
    change: blocks.Change = blocks.unchanged


DEEPSEEK_V3 = Mixture(routers.sigmoid_limited, attention=latent_attention)
GLM = Mixture(routers.sigmoid_limited, attention=attention_in_part)

MIXTURES: dict[str, Mixture] = {
    "mixtral": Mixture(routers.softmax_in_full),
    "olmoe": Mixture(routers.softmax),
    "qwen2_moe": Mixture(routers.softmax, experts.block_shared_first),
    "qwen3_moe": Mixture(routers.softmax),
    "mellum": Mixture(routers.softmax),
    "deepseek_v2": Mixture(routers.softmax_limited, attention=complex_attention),
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "glm4_moe_lite": DEEPSEEK_V3,
    "glm4_moe": GLM,
    "dots1": Mixture(routers.sigmoid_limited),
    "solar_open": Mixture(routers.sigmoid_limited),
    "granitemoe": Mixture(routers.softmax_of_best, base=granite, change=granite.multiplied),
    "minimax_m2": Mixture(routers.sigmoid_biased),
    "ernie4_5_moe": Mixture(routers.softmax_statics, experts.block_shared_first, ernie4_5.attention, ernie4_5),
    "hunyuan_v1_moe": Mixture(routers.softmax_linear, experts.block_shared_first, hunyuan.attention),
}

TYPES = tuple(MIXTURES)


def mixture(model: Model) -> Mixture:
    """The composition of this model's class."""
    return MIXTURES[model.arch.model_type]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    out: Tensor = mixture(model).base.stem(model, ids)
    return out


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    out: Tensor = mixture(model).base.top(model, x)
    return out


def shared(model: Model, hidden: Tensor) -> Any:
    """Position ids, rotary tables and masks."""
    if model.arch.latent is not None:
        return _shared_latent(model, hidden)
    around = mixture(model).base.shared(model, hidden)
    if model.arch.model_type == "qwen2_moe" and around.full is None and model.given_mask is None:
        around.sliding = model.tape.new("ss", 1, BOOL)
    return around


def _shared_latent(model: Model, hidden: Tensor) -> Shared:
    ids, mask = positions(model), causal_mask(model, hidden)
    if mixture(model).attention is complex_attention:
        table = latent.phases(model)
        return Shared(ids, table, table, mask, None)
    return Shared(ids, *latent.tables(model, hidden.itemsize), mask, None)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer."""
    parts = mixture(model)
    return blocks.pre_norm(model, layer, x, around, parts.attention, feed_forward, change=parts.change)


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts, or the dense block of a layer without any."""
    if layer.kind is None or layer.kind.mlp != "moe":
        return experts.mlp(model, layer, x)
    parts = mixture(model)
    return parts.block(model, layer, x, parts.router)
