"""Command R7B and A (Cohere 2): Cohere with windowed layers; layers that see everything have no positions."""

from estimator.step.families import blocks
from estimator.step.families.cohere import shared, stem, top
from estimator.step.families.llama import Shared, attended, mlp, projected, unturned, windowed
from estimator.step.families.rotary import in_full
from estimator.step.model import Layer, Model
from estimator.step.norms import centred
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.parallel(model, layer, x, around, attention, mlp, centred)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Cohere's, turned only in windowed layers."""
    q, k, v = projected(layer, x, turned=windowed(layer))
    if windowed(layer):
        q, k = in_full(q, k, around.cos, around.sin)
    else:
        q, k = unturned(model, q, k, around.mask(layer))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
