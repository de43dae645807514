"""SmolLM 3: Llama with layers in between that have no positions."""

from estimator.architecture import Architecture
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top", "variant"]


def variant(arch: Architecture, index: int) -> int:
    """1 for a layer with rotary positions, 0 for every ``no_rope_layer_interval``-th, which has none."""
    interval = dict(arch.extra).get("no_rope_layer_interval") or 4
    return int((index + 1) % int(interval) != 0)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, turned where the layer has positions."""
    q, k, v = projected(layer, x)
    if variant(model.arch, layer.index):
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
