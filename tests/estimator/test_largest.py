"""The search finds exactly the last size that fits."""

from hypothesis import given
from hypothesis import strategies as st

from estimator.largest import largest


@given(
    fixed=st.integers(0, 1000),
    slope=st.integers(0, 50),
    curve=st.integers(0, 3),
    start=st.integers(1, 500),
    limit=st.integers(0, 60_000),
)
def test_largest_is_the_last_that_fits(fixed: int, slope: int, curve: int, start: int, limit: int) -> None:
    most = 700

    def live(size: int) -> int:
        return fixed + slope * size + curve * size * size

    fitting = [size for size in range(1, most + 1) if live(size) <= limit]
    assert largest(live, (start, live(start)), limit, most) == (fitting[-1] if fitting else 0)


def test_few_evaluations_are_enough() -> None:
    asked: list[int] = []

    def live(size: int) -> int:
        asked.append(size)
        return 1_000_000 + 37 * size + size * size // 1000

    found = largest(live, (1024, live(1024)), 50_000_000, 16_777_216)
    assert live(found) <= 50_000_000 < live(found + 1)
    assert len(asked) < 15
