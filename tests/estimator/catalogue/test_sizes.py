"""The smallest size of card that holds a run."""

import pytest

from estimator.catalogue.sizes import sizes_gb

GIB = 2**30


@pytest.mark.parametrize(("needed", "size"), [(7 * GIB, 8), (8 * GIB, 10), (int(22.5 * GIB), 32), (10_000 * GIB, None)])
def test_smallest_size(needed: int, size: int | None) -> None:
    assert next(iter(sizes_gb(needed)), None) == size
