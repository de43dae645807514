"""Time lost to failures: Young's and Daly's optimal checkpoint interval.

J. W. Young (1974) and J. T. Daly (2006): with a mean time M between interruptions and a checkpoint cost C, the best
interval is sqrt(2 C M), and the share of time lost C/interval + interval/(2 M) + R/M, R to notice and restart.
"""

from dataclasses import dataclass
from math import expm1, sqrt

from estimator.errors import EstimatorError

GPU_HOURS_PER_FAILURE = 50_677
"""Llama 3 405B (arXiv 2407.21783, table 5): 419 unexpected interruptions of 16,384 H100 in 54 days."""


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Hours to write a checkpoint, to notice a failure and start again, and between checkpoints (None: the best)."""

    write_hours: float
    restart_hours: float
    interval_hours: float | None = None


FAST = Checkpointing(2 / 60, 15 / 60)
SLOW = Checkpointing(10 / 60, 1.0)


def waste(gpu_count: int, how: Checkpointing = FAST, hours_between: float | None = None) -> float:
    """Share of the time that is lost, added to the time without failures. The formula holds for every number of cards.

    ``hours_between`` failures of the whole job: by default from the published rate and the number of cards; for spot
    machines the hours between preemptions.
    """
    if gpu_count < 1:
        raise EstimatorError("gpu_count must be at least 1", "gpu_count 至少为 1", "gpu_count")
    mean = hours_between or GPU_HOURS_PER_FAILURE / gpu_count
    interval = how.interval_hours or sqrt(2 * how.write_hours * mean)
    return how.write_hours / interval + interval / (2 * mean) + how.restart_hours / mean


def chance_of_failure(gpu_count: int, hours: float) -> float:
    """Probability of at least one hardware interruption."""
    return -expm1(-gpu_count * hours / GPU_HOURS_PER_FAILURE)
