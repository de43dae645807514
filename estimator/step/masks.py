"""Attention masks as transformers 5.24 makes them (masking_utils.py): none where the kernel knows "causal" itself."""

from estimator.step.model import Model
from estimator.step.tape import BOOL, Tensor


def causal_mask(model: Model, hidden: Tensor) -> Tensor | None:
    """The mask that full-attention layers get: additive for eager attention, boolean or none for SDPA."""
    tape, regime = model.tape, model.regime
    if regime.attention == "eager":
        allowed = tape.new("ss", 1, BOOL)
        mask = tape.new("bss", 1, hidden.itemsize)
        del allowed
        return mask
    if regime.attention.startswith("flash"):
        return None
    return tape.new("bss", 1, BOOL) if regime.mask == "4d" else None
