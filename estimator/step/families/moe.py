"""Decoders whose feed-forward blocks are mixtures of experts, with Llama's or latent attention."""

from estimator.step import experts, latent
from estimator.step.attention import rotate
from estimator.step.experts import Router
from estimator.step.families import blocks, llama
from estimator.step.families.llama import Shared
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

stem, top = llama.stem, llama.top

ROUTERS: dict[str, Router] = {
    "mixtral": experts.full_softmax_router,
    "deepseek_v2": experts.limited_softmax_router,
    "deepseek_v3": experts.sigmoid_router,
}

TYPES = ("mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3")


def shared(model: Model, hidden: Tensor) -> Shared:
    """Position ids, rotary tables and masks."""
    if model.arch.latent is None:
        return llama.shared(model, hidden)
    ids, mask = positions(model), causal_mask(model, hidden)
    if model.arch.model_type == "deepseek_v2":
        table = latent.phases(model)
        return Shared(ids, table, table, mask, None)
    return Shared(ids, *latent.tables(model, hidden.itemsize), mask, None)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, feed_forward)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """Latent attention where the model has it, else Llama's, with norms of queries and keys where it has those."""
    if model.arch.latent is not None:
        return latent_attention(model, layer, x, around)
    arch = model.arch
    q = layer.linear(x, "self_attn.q_proj")
    if arch.qk_norm:
        q = layer.rms_norm(q, "self_attn.q_norm", 1 if arch.qk_norm_full else arch.heads)
    k = layer.linear(x, "self_attn.k_proj")
    if arch.qk_norm:
        k = layer.rms_norm(k, "self_attn.k_norm", 1 if arch.qk_norm_full else arch.kv_heads)
    v = layer.linear(x, "self_attn.v_proj")
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    return llama.attended(model, layer, q, k, v, around)


def latent_attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """DeepSeek's attention with the rotation of its version."""
    rotation = latent.rotate_pairs if experts.fact(model, "rope_interleave", True) else latent.rotate_halves
    if model.arch.model_type == "deepseek_v2":
        rotation = latent.rotate_complex
    return latent.attention(model, layer, x, (around.cos, around.sin), around.mask(layer), rotation)


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts, or the dense block of a layer without any."""
    if layer.kind is None or layer.kind.mlp != "moe":
        return llama.mlp(model, layer, x)
    router = ROUTERS.get(model.arch.model_type, experts.softmax_router)
    if layer.module_of("shared_gate"):
        return experts.block_shared_first(model, layer, x, router)
    return experts.block(model, layer, x, router)
