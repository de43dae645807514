"""GLM-4-0414 (glm4): GLM with a norm before and after each block."""

from estimator.step.families import blocks
from estimator.step.families.glm import attention, shared, stem, top
from estimator.step.families.llama import Shared
from estimator.step.families.phi3 import mlp
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.sandwich(model, layer, x, around, attention, mlp)
