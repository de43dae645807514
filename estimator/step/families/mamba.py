"""Mamba and Mamba-2: one norm and one state-space block a layer, the residual stream in fp32."""

from typing import Any

from estimator.step import ops, selective_scan, state_space
from estimator.step.model import Layer, Model, embedded
from estimator.step.norms import rms
from estimator.step.tape import FULL, Tensor

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("mamba2", "mamba", "falcon_mamba")


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return embedded(model, model.stem.name_of("embedding"), ids)


def shared(model: Model, hidden: Tensor) -> Any:
    """Nothing: no positions, no mask."""
    del model, hidden


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """Norm in the model's type, the block, added to the fp32 residual."""
    del around
    residual = x
    with model.tape.inside("norm"):
        x = rms(layer, ops.cast(x, layer.weight("norm.weight").itemsize), "norm")
    residual = ops.cast(residual, FULL)
    with model.tape.inside("attention"):
        scan = state_space if model.arch.model_type == "mamba2" else selective_scan
        x = scan.mixer(model, layer, x, "mixer")
    return ops.add(residual, x)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms(model.top, x, "norm_f")
