"""What a move asks besides the run itself, and what a run that was measured came to."""

from collections.abc import Callable
from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.catalogue import GpuMatch
from estimator.schema import Range, Run, Verdict


class Outcome(NamedTuple):
    """Bytes: the allocated peak, what the card shows (low, expected, high), the phases' peaks, the host's memory.

    ``usable``: what the card has, where the verdict is that nothing shown lies above it; else 0.
    """

    allocated: int
    shown: tuple[int, int, int]
    verdict: Verdict | None
    phases: tuple[int, ...] = ()
    host: int = 0
    usable: int = 0

    @property
    def range(self) -> Range:
        """What the card shows."""
        low, expected, high = self.shown
        return Range(low=low, expected=expected, high=high)

    @property
    def fits(self) -> bool:
        """Whether it surely fits."""
        return self.verdict == "fits"

    def helps(self, before: "Outcome") -> bool:
        """Whether the peak is no higher than before, and some phase needs less: another move may need that."""
        lower = any(now < then for now, then in zip(self.phases, before.phases, strict=False))
        return self.allocated <= before.allocated and (self.allocated < before.allocated or lower)


class Around(NamedTuple):
    """A run's model and card, and the estimator's own ways with a run.

    ``refill`` fills what a changed run leaves out; ``measure`` is None where the estimator refuses the run.
    """

    arch: Architecture
    gpu: GpuMatch
    refill: Callable[[Run], Run]
    measure: Callable[[Run], Outcome | None]
