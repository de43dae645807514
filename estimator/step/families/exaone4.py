"""EXAONE 4: norms behind the blocks, normed heads; a model with a window has positions only in windowed layers."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem, top, unturned, windowed
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.post_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, norms of queries and keys, rotary where the layer has it, attention, output projection."""
    turned = windowed(layer) or not model.arch.sliding_window
    q, k, v = projected(layer, x, turned=turned)
    if not turned:
        q, k = unturned(model, q, k, around.mask(layer))
    q = layer.rms_norm(q, "self_attn.q_norm", model.arch.heads)
    k = layer.rms_norm(k, "self_attn.k_norm", model.arch.kv_heads)
    if turned:
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
