"""Ministral 3: Mistral whose queries are scaled by position."""

from estimator.step import ops
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import FULL, Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with a factor per position on the queries."""
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    q = ops.mul(q, ops.cast(model.tape.new("s", 1, FULL), q.itemsize))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
