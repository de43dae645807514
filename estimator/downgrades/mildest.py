"""The mildest grade of a move with which a run fits, in few looks: a look may mean that a step is traced."""

from collections.abc import Callable, Sequence
from functools import cache

from estimator.downgrades.around import Outcome
from estimator.schema import Run

Look = Callable[[int], tuple[Run, Outcome | None]]
"""A grade's run and what it comes to."""

FEW = 8
"""Grades that are halved as soon as guessed."""
GUESSES = 4


def mildest(count: int, look: Look) -> int:
    """The first grade that fits, where the last one does and grades grow stronger."""
    no, yes = -1, count - 1
    if count > FEW:
        if _fits(look, 0):
            return 0
        no, yes = _guessed(look, 0, yes)
    while yes - no > 1:
        middle = (no + yes) // 2
        no, yes = (no, middle) if _fits(look, middle) else (middle, yes)
    return yes


def least(runs: Sequence[Run], measure: Callable[[Run], Outcome | None]) -> Run | None:
    """The first run that fits of those that grow stronger; None where the last does not."""

    @cache
    def look(place: int) -> tuple[Run, Outcome | None]:
        return runs[place], measure(runs[place])

    last = len(runs) - 1
    return runs[mildest(len(runs), look)] if runs and _fits(look, last) else None


def _fits(look: Look, grade: int) -> bool:
    found = look(grade)[1]
    return found is not None and found.fits


def _guessed(look: Look, no: int, yes: int) -> tuple[int, int]:
    """A grade that does not fit and a later one that does, closer together where the count of cards is what grows.

    What is shared out falls as one over the count: false position on that, which lands on the border or beside it.
    """
    for _ in range(GUESSES):
        share = _share(look(no), look(yes))
        if share is None or yes - no < 2:
            break
        guess = min(max(no + share - (look(no)[0].gpu_count or 1), no + 1), yes - 1)
        no, yes = (no, guess) if _fits(look, guess) else (guess, yes)
    return no, yes


def _share(small: tuple[Run, Outcome | None], large: tuple[Run, Outcome | None]) -> int | None:
    """The count of cards at which what is shown comes down to what is usable, by a line through two inverses."""
    first, last = small[0].gpu_count or 1, large[0].gpu_count or 1
    if small[1] is None or large[1] is None or not small[1].usable or first == last:
        return None
    over, under = small[1].shown[2] - small[1].usable, large[1].usable - large[1].shown[2]
    if over <= 0 or under < 0:
        return None
    inverse = 1 / last + (1 / first - 1 / last) * under / (over + under)
    return -int(-1 / inverse // 1)
