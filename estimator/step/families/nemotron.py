"""Nemotron (Minitron): layer norms scaled by one plus their weight, partial rotary positions, squared ReLU."""

from estimator.step.families import blocks
from estimator.step.families.arcee import mlp
from estimator.step.families.llama import Shared, attended, projected, shared, stem
from estimator.step.families.rotary import partial
from estimator.step.model import Layer, Model
from estimator.step.norms import layer_norm_plus_one
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, layer_norm_plus_one)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with partial rotary positions."""
    arch = model.arch
    q, k, v = projected(layer, x)
    q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around, by_head=True)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return layer_norm_plus_one(model.top, x, "norm")
