"""Helium: Llama with interleaved rotary pairs and norms scaled in fp32."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem
from estimator.step.families.rotary import interleaved
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_scaled_in_full
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, rms_scaled_in_full)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with tables made anew for the interleaved pairs."""
    q, k, v = projected(layer, x)
    q, k = turned(q, k, around)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def turned(q: Tensor, k: Tensor, around: Shared) -> tuple[Tensor, Tensor]:
    """Rotary embedding with interleaved tables."""
    cos, sin = interleaved(around.cos), interleaved(around.sin)
    return rotate(q, cos, sin), rotate(k, cos, sin)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_scaled_in_full(model.top, x, "norm")
