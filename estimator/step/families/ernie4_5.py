"""ERNIE 4.5 (dense): Llama with interleaved rotary pairs, turned in fp32."""

from estimator.step import ops
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, stem, top
from estimator.step.families.olmo import shared
from estimator.step.families.rotary import half_in_full, interleaved
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["attention", "layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with fp32 tables made anew for the interleaved pairs."""
    q, k, v = projected(layer, x)
    q, k = turned(q, k, around)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def turned(q: Tensor, k: Tensor, around: Shared) -> tuple[Tensor, Tensor]:
    """Rotary embedding in fp32, cast back at the end."""
    cos, sin = interleaved(around.cos), interleaved(around.sin)
    q_turned, k_turned = half_in_full(q, cos, sin), half_in_full(k, cos, sin)
    return ops.cast(q_turned, q.itemsize), ops.cast(k_turned, k.itemsize)
