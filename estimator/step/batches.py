"""What a batch brings besides ids and labels, and the masks of sequences that differ: packed documents, padding.

transformers 5.24, masking_utils.py (``find_packed_sequence_indices``, ``sdpa_mask``): a padding mask, or position ids
that start again, is joined to the causal one for every sequence of the batch.
"""

from estimator.step.model import Model
from estimator.step.tape import BOOL, LONG, Tensor

DIFFERENT = ("packed", "padded")
"""Kinds of batches whose sequences need masks of their own."""


def batch_inputs(model: Model) -> list[Tensor]:
    """Position ids of packed documents (and their borders for the flash kernel), or a padding mask."""
    tape, regime = model.tape, model.regime
    if regime.mask == "padded":
        return [tape.new("T", 1, LONG)]
    if regime.mask != "packed":
        return []
    model.given_positions = tape.new("T", 1, LONG)
    if regime.attention.startswith("flash"):
        tape.pin(tape.new("1", 1, LONG).storage)
    return []


def mask_by_sequence(model: Model, conditions: int) -> Tensor:
    """The boolean mask: causal (and windowed), then one document or no padding, joined one after the other."""
    tape = model.tape
    packed = model.regime.mask == "packed"
    numbers = _documents(model) if packed else tape.new("T", 1, BOOL)
    indices = [tape.new("s", 1, LONG) for _ in range(2)]
    result = tape.new("1", 1, BOOL)
    for _ in range(conditions):
        sides = [tape.new("s", 1, LONG) for _ in range(2)] if packed else []
        condition = tape.new("ss", 1, BOOL)
        del sides
        result = tape.like(condition)
        del condition
    looked_up = [tape.like(numbers) for _ in range(2 if packed else 1)]
    condition = tape.new("bss", 1, BOOL) if packed else looked_up[0]
    del looked_up
    result = tape.new("bss", 1, BOOL)
    del condition, numbers, indices
    return result


def _documents(model: Model) -> Tensor:
    """The number of each token's document: where position ids do not go up by one, counted."""
    tape = model.tape
    longer = tape.new("T1", 1, LONG)
    steps = tape.new("T", 1, LONG)
    del longer
    changes = tape.new("T", 1, BOOL)
    numbers = tape.new("T", 1, LONG)
    del changes, steps
    return numbers
