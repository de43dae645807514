"""Arcee (AFM): Llama with a plain feed-forward block."""

from estimator.step.activations import activation
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attention, shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "mlp", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(act(up(x)))``."""
    return layer.linear(activation(model.arch.activation)(layer.linear(x, "mlp.up_proj")), "mlp.down_proj")
