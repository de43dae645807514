"""Gemma: Llama with a scaled embedding and norms scaled by one plus their weight."""

from estimator.step import ops
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attention, lookup, mlp, shared
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_plus_one
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings times a number kept as a tensor, cast where the embedding is of another type than the load."""
    hidden = lookup(model, ids)
    factor = Tensor(model.tape, None, "1", 1, model.regime.itemsize)
    return ops.mul(hidden, ops.cast(factor, hidden.itemsize))


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, rms_plus_one)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_plus_one(model.top, x, "norm")
