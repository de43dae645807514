"""MiniCPM 3: latent attention, dense blocks, multipliers on the embedding, the blocks and the final norm."""

from estimator.step import latent, ops
from estimator.step.families import blocks, llama
from estimator.step.families.gemma import stem
from estimator.step.families.granite import multiplied
from estimator.step.families.llama import Shared, mlp
from estimator.step.families.youtu import shared
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, change=multiplied)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Latent attention, its rotary parts turned by halves."""
    return latent.attention(model, layer, x, (around.cos, around.sin), around.mask(layer), latent.rotate_halves)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm, its result divided by a number."""
    return ops.scale(llama.top(model, x))
