"""Jais 2: Arcee's blocks with layer norms and biases."""

from estimator.step.families import blocks
from estimator.step.families.arcee import mlp
from estimator.step.families.llama import Shared, attention, shared, stem
from estimator.step.families.starcoder2 import top
from estimator.step.model import Layer, Model
from estimator.step.norms import layer_norm
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, layer_norm)
