"""The mildest grade is the first that fits, and few are looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.downgrades.around import Outcome
from estimator.downgrades.mildest import FEW, mildest
from estimator.schema import Run

USABLE = 1 << 34


def outcome(shown: float) -> Outcome:
    size = int(shown)
    return Outcome(size, (size, size, size), "fits" if size <= USABLE else "does_not_fit", usable=USABLE)


@pytest.mark.parametrize("first", range(FEW - 1))
def test_few_grades_are_halved(first: int) -> None:
    run = Run(model="llama-3.2-1b")
    assert mildest(FEW - 1, lambda grade: (run, outcome(0 if grade >= first else 2 * USABLE))) == first


@given(
    first=st.integers(1, 8),
    most=st.integers(9, 64),
    fixed=st.floats(0, 0.9),
    shared=st.floats(0.2, 60),
    tax=st.floats(0, 0.2),
)
def test_counts_of_cards_are_guessed(first: int, most: int, fixed: float, shared: float, tax: float) -> None:
    """Part of the bytes is shared out, part is not, and what each card needs for the others grows a little."""
    counts = range(first, first + most)

    def at(count: int) -> Outcome:
        return outcome(USABLE * (fixed + shared / count + tax / count**0.5))

    looked: set[int] = set()

    def look(grade: int) -> tuple[Run, Outcome]:
        looked.add(grade)
        return Run(model="llama-3.2-1b", gpu_count=counts[grade]), at(counts[grade])

    fitting = [grade for grade, count in enumerate(counts) if at(count).fits]
    if fitting:
        assert mildest(most, look) == fitting[0]
        assert len(looked) <= 6
