"""Llama and its kin: pre-norm decoder with RMS norms, rotary positions, grouped queries and a gated MLP."""

from estimator.step import ops
from estimator.step.attention import eager, rotate, sdpa
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.tape import FULL, Tensor


class Shared:
    """What all layers read: position ids, rotary tables and masks."""

    def __init__(self, ids: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> None:
        self.ids, self.cos, self.sin, self.mask = ids, cos, sin, mask


def rotary(model: Model, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine tables of one length, in the residual stream's type."""
    tape, size = model.tape, int(model.arch.head_dim * model.arch.rotary_fraction)
    angles = tape.new("s", size // 2, FULL)
    table = ops.concat([angles, angles])
    del angles
    cos = ops.cast(ops.scale(ops.scale(table)), hidden.itemsize)
    sin = ops.cast(ops.scale(ops.scale(table)), hidden.itemsize)
    return cos, sin


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return ops.embedding(model.stem.weight("embed_tokens.weight"), ids.rows, model.arch.hidden, ids)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Tables and masks, made once per forward."""
    ids = positions(model)
    mask = causal_mask(model, hidden)
    cos, sin = rotary(model, hidden)
    return Shared(ids, cos, sin, mask)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    residual = x
    with model.tape.inside("norm"):
        x = layer.rms_norm(x, "input_layernorm")
    with model.tape.inside("attention"):
        x = attention(model, layer, x, around)
    x = ops.add(residual, x)
    residual = x
    with model.tape.inside("norm"):
        x = layer.rms_norm(x, "post_attention_layernorm")
    with model.tape.inside("mlp"):
        x = mlp(layer, x)
    return ops.add(residual, x)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """Projections, rotary, attention, output projection."""
    arch = model.arch
    q = layer.linear(x, "self_attn.q_proj")
    k = layer.linear(x, "self_attn.k_proj")
    v = layer.linear(x, "self_attn.v_proj")
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    kernel = eager if model.regime.attention == "eager" else sdpa
    out = kernel(q, k, v, arch.heads, arch.kv_heads, around.mask)
    return layer.linear(out, "self_attn.o_proj")


def mlp(layer: Layer, x: Tensor) -> Tensor:
    """``down(act(gate(x)) * up(x))``."""
    return layer.linear(
        ops.mul(ops.silu(layer.linear(x, "mlp.gate_proj")), layer.linear(x, "mlp.up_proj")), "mlp.down_proj"
    )


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.rms_norm(x, "norm")
