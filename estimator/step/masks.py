"""Attention masks as transformers 5.24 makes them (masking_utils.py): none where the kernel knows "causal" itself."""

from estimator.step.batches import DIFFERENT, mask_by_sequence
from estimator.step.model import Model
from estimator.step.tape import BOOL, LONG, Rows, Tensor


def given_mask(model: Model) -> Tensor | None:
    """The 4-d boolean mask that a collator hands in; it lives as long as the batch."""
    return model.tape.new("bss", 1, BOOL) if model.regime.mask == "4d" else None


def tokens_so_far(model: Model) -> Rows:
    """Rows of a tensor over all tokens, those in the cache included."""
    return "K" if model.tape.stage else "T"


def positions(model: Model) -> Tensor:
    """Position ids: ``arange(length) + 0``, one row for the whole batch."""
    if model.given_positions is not None:
        return model.given_positions
    counted = model.tape.new("s", 1, LONG)
    ids = model.tape.like(counted)
    del counted
    return ids


def causal_mask(model: Model, hidden: Tensor, attention: str = "") -> Tensor | None:
    """The mask that full-attention layers get: additive for eager attention, boolean or none for SDPA.

    ``attention`` overrides the run's, for families that know one implementation only.
    """
    attention = attention or model.regime.attention
    if model.given_mask is not None or attention.startswith("flash"):
        return model.given_mask
    if attention == "eager":
        return _additive(model, hidden, 1)
    if model.regime.mask in DIFFERENT:
        return mask_by_sequence(model, 1)
    if model.tape.stage and model.regime.cache == "static":  # the unused part of a preallocated cache is masked
        return _allowed(model, 1)
    return None


def sliding_mask(model: Model, hidden: Tensor, attention: str = "") -> Tensor | None:
    """The mask of layers with a window: SDPA needs one as soon as the length reaches the window."""
    attention = attention or model.regime.attention
    if model.given_mask is not None or attention.startswith("flash"):
        return model.given_mask
    model.tape.windowed = True
    mask: Tensor | None = None
    if attention == "eager":
        mask = _additive(model, hidden, 2)
    elif model.regime.mask in DIFFERENT:
        mask = mask_by_sequence(model, 2)
    elif model.regime.windowed:
        mask = _allowed(model, 2)
    model.tape.windowed = False
    return mask


def _allowed(model: Model, conditions: int) -> Tensor:
    """The boolean mask of one sequence: comparisons of positions; several are joined by "and" one after the other."""
    tape = model.tape
    if conditions == 1:
        return tape.new("ss", 1, BOOL)
    result = tape.new("1", 1, BOOL)
    for _ in range(conditions):
        condition = tape.new("ss", 1, BOOL)
        result = tape.like(condition)
        del condition
    return result


def _additive(model: Model, hidden: Tensor, conditions: int) -> Tensor:
    """The mask that written-out attention adds: zeros and minimums, for every sequence of the batch."""
    different = model.regime.mask in DIFFERENT
    allowed = mask_by_sequence(model, conditions) if different else _allowed(model, conditions)
    mask = model.tape.new("bss", 1, hidden.itemsize)
    del allowed
    return mask


def written_out_mask(model: Model, hidden: Tensor) -> Tensor:
    """The mask of models that write their attention out whatever the run asks for."""
    return model.given_mask if model.given_mask is not None else _additive(model, hidden, 1)
