"""OLMo 3: OLMo 2 with windowed layers and rotary tables for each kind of layer."""

from estimator.step.families import blocks, gemma3
from estimator.step.families.gemma3 import Shared
from estimator.step.families.llama import attended, mlp, stem
from estimator.step.families.olmo2 import normed, top
from estimator.step.families.rotary import widened
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_scaled_first
from estimator.step.tape import FULL, Tensor

__all__ = ["layer", "shared", "stem", "top"]


def shared(model: Model, hidden: Tensor) -> Shared:
    """Masks, and fp32 tables for each kind of layer."""
    return gemma3.gathered(model, hidden, FULL)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.post_norm(model, layer, x, around, attention, mlp, rms_scaled_first)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As OLMo 2's, with the tables of the layer's kind."""
    q, k, v = normed(layer, x)
    q, k = widened(q, k, *around.turns(layer))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
