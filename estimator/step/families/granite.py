"""Granite: Llama with multipliers on the embedding, on what each block adds, and on the logits (losses.py)."""

from estimator.step import ops
from estimator.step.families import blocks, llama
from estimator.step.families.llama import Shared, attention, mlp, shared, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings times a number."""
    return ops.scale(llama.stem(model, ids))


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, change=multiplied)


def multiplied(_model: Model, x: Tensor) -> Tensor:
    """The multiplier of the residual stream."""
    return ops.scale(x)
