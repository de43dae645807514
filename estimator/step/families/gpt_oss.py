"""gpt-oss: written-out attention with a sink per head, windowed layers in turn, experts with biases and a clamp."""

from typing import Any

from estimator.step import experts, ops, routers
from estimator.step.attention import repeated
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, gathered, projected, stem
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_scaled_first
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import by_token, scores_of, unfolded, weighted

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("gpt_oss",)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Tables, and masks for attention that is written out."""
    around = gathered(model, hidden, hidden.itemsize, "eager")
    angles = model.tape.new("s", model.arch.head_dim // 2, FULL)
    cos, sin = ops.scale(ops.scale(angles)), ops.scale(ops.scale(angles))
    around.cos, around.sin = ops.cast(cos, hidden.itemsize), ops.cast(sin, hidden.itemsize)
    return around


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding on the halves of each head, with tables of one half."""
    first, second = ops.split(x, (x.width // 2, x.width // 2))
    left = ops.subtract(ops.mul(first, cos), ops.mul(second, sin))
    right = ops.add(ops.mul(second, cos), ops.mul(first, sin))
    return ops.concat([left, right])


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, feed_forward, rms_scaled_first)


def attention(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """Scores get one more column, the sink; the greatest is taken off before the softmax, the sink after it."""
    arch = model.arch
    q, k, v = projected(layer, x)
    v = by_token(v)
    q, k = turned(q, around.cos, around.sin), turned(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    k, v = repeated(k, arch.heads, arch.kv_heads), repeated(v, arch.heads, arch.kv_heads)
    copied = 1 < arch.kv_heads < arch.heads
    scores = ops.scale(scores_of(model, q, k, False, copied))
    mask = around.mask(layer)
    if mask is not None:
        scores = ops.add(scores, mask)
    joined = ops.copy(scores)
    joined = centred(joined, arch.heads)
    scores = ops.keeps_output(joined)
    out = unfolded(model, weighted(model, scores, v, copied))
    return layer.linear(out, "self_attn.o_proj"), scores


def centred(x: Tensor, heads: int) -> Tensor:
    """Less the greatest of each row, whose index is kept; beside it the sinks' column of the softmax that follows."""
    tape = x.tape
    indices, column = tape.new("T", heads, LONG), tape.new("T", heads, x.itemsize)
    out = tape.like(x)
    if x.needs:
        tape.attach(out, (x,), [tape.save(indices), tape.save(column)], lambda g: (g,))
    return out


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts."""
    return experts.block(model, layer, x, routers.softmax_of_best_biased, clamped)


def clamped(model: Model, x: Tensor) -> Tensor:
    """``(up + 1) * gate * sigmoid(c * gate)`` of the even and odd elements, both clamped."""
    del model
    gate, up = ops.part(x, x.width // 2), ops.part(x, x.width // 2)
    gate = ops.keeps_input(gate)
    up = ops.keeps_input(up)
    glu = ops.mul(gate, ops.sigmoid(ops.scale(gate)))
    return ops.mul(ops.shift(up), glu)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_scaled_first(model.top, x, "norm")
