"""GLM-4 9B (glm): fused gate and up, rotary positions on interleaved pairs of a part of each head."""

from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, projected, shared, stem, top
from estimator.step.families.phi3 import mlp
from estimator.step.families.rotary import interleaved, partial
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["attention", "layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with tables made anew for the interleaved pairs."""
    arch = model.arch
    q, k, v = projected(layer, x)
    q, k = turned(q, k, around, (arch.heads, arch.kv_heads))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around, by_head=True)


def turned(q: Tensor, k: Tensor, around: Shared, heads: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Partial rotary embedding with interleaved tables."""
    cos, sin = interleaved(around.cos), interleaved(around.sin)
    return partial(q, k, cos, sin, heads)
