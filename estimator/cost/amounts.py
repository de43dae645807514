"""How much there is to do: tokens that a job works through, from tokens or samples and epochs."""

from typing import NamedTuple

from estimator.cost.work import mean_length
from estimator.schema import Lengths, Run
from estimator.stages.rows import rows_per_item


class Amount(NamedTuple):
    """Tokens that go through the model, padding included: low, expected and high; ``rows`` of the forward."""

    low: float
    expected: float
    high: float
    rows: float


def has_amount(run: Run) -> bool:
    """Whether the run says how much there is to do."""
    return bool(run.tokens or run.samples)


def trained_amount(run: Run) -> Amount | None:
    """What a filled training run works through over all epochs; None where it says neither tokens nor samples.

    A sample is an item of the micro-batch: a row, a pair (dpo), a prompt with its completions (grpo). Unequal rows that
    are not packed are padded to the longest of their micro-batch, which for lengths spread evenly lies at
    mean + (max - mean) (b - 1) / (b + 1) for b rows.
    """
    length, epochs = mean_length(run), run.epochs or 1
    if run.tokens:
        rows = run.tokens * epochs / max(length, 1)
    elif run.samples:
        rows = run.samples * epochs * rows_per_item(run)
    else:
        return None
    low, expected, high = _padded_lengths(run, length)
    scale = run.tokens * epochs / length if run.tokens else rows
    return Amount(scale * low, scale * expected, scale * high, rows)


def _padded_lengths(run: Run, mean: float) -> tuple[float, float, float]:
    lengths = run.seq_len
    at_once = (run.micro_batch or 1) * rows_per_item(run)
    if not isinstance(lengths, Lengths) or run.packing or at_once == 1:
        return mean, mean, mean
    return mean, mean + (lengths.max - mean) * (at_once - 1) / (at_once + 1), float(lengths.max)


def generated_amount(run: Run) -> float | None:
    """Tokens to be generated; None where neither tokens nor requests are said."""
    if run.tokens:
        return run.tokens * (run.epochs or 1)
    return run.samples * (run.epochs or 1) * (run.new_tokens or 1) if run.samples else None
