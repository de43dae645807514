"""Which of the steps a short answer shows."""

from estimator.downgrades.facts import sequence
from estimator.schema import Estimate, Step

LEAST_SHARE = 0.05
"""Share of the peak that a step saves which neither fits nor belongs to the plan, and is shown all the same."""


def most_useful(found: Estimate, most: int, others: int | None = None) -> list[int]:
    """Places of the steps to show, in their own order: those of the plan or that fit, then ``others`` cheap ones."""
    planned = {_move_of(one) for one in found.plan.steps} if found.plan else set()
    steps = list(enumerate(found.downgrades))
    first = [place for place, step in steps if _move_of(step.id) in planned]
    first += [place for place, step in steps if place not in first and step.verdict == "fits"]
    rest = [place for place, step in steps if place not in first and step.saves >= LEAST_SHARE * _before(step)]
    return sorted([*first, *rest[:others]][:most])


def _move_of(step: str) -> str:
    """The move of a step's id, whatever its figures: a plan may make less of it than is needed by itself."""
    return max((name for name in sequence("document") if f"{step}-".startswith(f"{name}-")), key=len, default=step)


def _before(step: Step) -> int:
    return step.allocated_peak + step.saves
