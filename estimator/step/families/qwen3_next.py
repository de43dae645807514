"""Qwen 3-Next and Qwen 3.5: gated delta-net layers, every few layers full attention with an output gate."""

from estimator.step import experts, linear_attention, ops, routers
from estimator.step.families import blocks, llama
from estimator.step.families.llama import Shared, stem, values
from estimator.step.families.rotary import partial
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_plus_one
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_token

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")


def shared(model: Model, hidden: Tensor) -> Shared:
    """Tables and masks; Qwen 3.5's positions have several kinds, so that every sequence has tables of its own."""
    around = llama.shared(model, hidden)
    if model.arch.model_type != "qwen3_next":
        tables = (model.tape.new("T", around.cos.width, hidden.itemsize) for _ in range(2))
        around.cos, around.sin = tables
    return around


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer of either kind."""
    return blocks.pre_norm(model, layer, x, around, mixer, feed_forward, norm=rms_plus_one)


def mixer(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Linear or full attention."""
    if layer.kind is not None and layer.kind.attention == "linear":
        return linear_attention.mixer(model, layer, x), None
    return attention(model, layer, x, around)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Queries come with a gate for the result; norms before the partial rotary embedding."""
    arch = model.arch
    width = arch.heads * arch.head_dim
    q, gate = ops.split(layer.linear(x, "self_attn.q_proj"), (width, width))
    gate = ops.copy(gate)
    q = rms_plus_one(layer, by_token(q), "self_attn.q_norm", arch.heads)
    k = rms_plus_one(layer, by_token(layer.linear(x, "self_attn.k_proj")), "self_attn.k_norm", arch.kv_heads)
    v = layer.linear(x, "self_attn.v_proj")
    q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    k, v = layer.cached(k, v)
    mask = around.mask(layer)
    out, scores = attend(model, q, k, values(model, q, v, mask), mask, by_head=True)
    out = ops.mul(out, ops.sigmoid(gate))
    return layer.linear(out, "self_attn.o_proj"), scores


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """A mixture with a gated shared expert, or a dense block."""
    if layer.kind is None or layer.kind.mlp != "moe":
        return experts.mlp(model, layer, x)
    router = routers.softmax if model.arch.model_type == "qwen3_next" else routers.softmax_normalised
    return experts.block_shared_first(model, layer, x, router)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_plus_one(model.top, x, "norm")
