"""SmolLM 3: Llama with layers in between that have no positions."""

from estimator.architecture import Architecture
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem, top, unturned
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top", "variant"]


def variant(arch: Architecture, index: int) -> int:
    """1 for a layer with rotary positions, 0 for one without: as listed, else every ``no_rope_layer_interval``-th."""
    facts = dict(arch.extra)
    listed = str(facts.get("no_rope_layers") or "")
    if index < len(listed):
        return int(listed[index])
    return int((index + 1) % int(facts.get("no_rope_layer_interval") or 4) != 0)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, turned where the layer has positions."""
    turned = bool(variant(model.arch, layer.index))
    q, k, v = projected(layer, x, turned=turned)
    if turned:
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    else:
        q, k = unturned(model, q, k, around.mask(layer))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
