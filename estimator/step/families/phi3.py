"""Phi-3: Llama with fused projections (queries, keys, values; gate and up) and partial rotary positions."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, shared, stem, top
from estimator.step.families.rotary import cut
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import by_token, rate

__all__ = ["layer", "mlp", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, change=dropped)


def dropped(model: Model, x: Tensor) -> Tensor:
    """Dropout on what a block adds."""
    return ops.dropout(x, rate(model, model.arch.dropout))


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """One projection cut by slices, rotary, attention, output projection."""
    arch = model.arch
    qkv = layer.linear(x, "self_attn.qkv_proj")
    q = by_token(ops.part(qkv, arch.heads * arch.head_dim))
    k, v = by_token(ops.part(qkv, arch.kv_width)), ops.part(qkv, arch.kv_width)
    q, k = turned(q, around, arch.heads), turned(k, around, arch.kv_heads)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around, by_head=True)


def turned(x: Tensor, around: Shared, heads: int) -> Tensor:
    """Rotary embedding of the first part of each head, joined with the rest, which may be empty."""
    first, rest = cut(x, around.cos.width * heads)
    return ops.concat([rotate(first, around.cos, around.sin), rest])


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(up * act(gate))`` of the two halves of one projection."""
    up = layer.linear(x, "mlp.gate_up_proj")
    gate, up = ops.split(up, [model.arch.intermediate] * 2)
    up = ops.mul(up, activation(model.arch.activation)(gate))
    return layer.linear(up, "mlp.down_proj")
