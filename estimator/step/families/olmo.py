"""OLMo: Llama with layer norms that have no weights, and rotary tables in fp32."""

from estimator.step.families import blocks, llama
from estimator.step.families.llama import Shared, attended, mlp, projected, stem
from estimator.step.families.rotary import widened
from estimator.step.model import Layer, Model
from estimator.step.norms import without_weight
from estimator.step.tape import FULL, Tensor

__all__ = ["layer", "shared", "stem", "top"]


def shared(model: Model, hidden: Tensor) -> Shared:
    """Masks, and tables that stay in fp32."""
    return llama.gathered(model, hidden, FULL)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, without_weight)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, turned in fp32."""
    q, k, v = projected(layer, x)
    q, k = widened(q, k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return without_weight(model.top, x, "norm")
