"""Seed-OSS: Llama with dropout on what each block adds."""

from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attention, mlp, shared, stem, top
from estimator.step.families.starcoder2 import dropped
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, change=dropped)
