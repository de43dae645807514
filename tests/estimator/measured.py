"""Published peaks against the estimates and their intervals."""

from statistics import median
from typing import Any, NamedTuple

from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.cases import cases


class Measured(NamedTuple):
    """A published row: relative error, whether its interval holds it, the interval's width over the value.

    ``device``: the same of what nvidia-smi showed, where that was published too.
    """

    case: dict[str, Any]
    error: float
    inside: bool
    width: float
    device: tuple[float, bool, float] | None

    @property
    def source(self) -> str:
        """Short name of where the row is from."""
        return str(self.case["from"]["source"])

    @property
    def metric(self) -> str:
        """What was measured: allocated or reserved."""
        return str(self.case["measured"]["metric"])


def measured() -> list[Measured]:
    """All published rows, estimated."""
    return [_measured(case) for case in cases("measured.jsonl")]


def _measured(case: dict[str, Any]) -> Measured:
    found = estimate(Run.model_validate(case["run"])).per_gpu
    assert found is not None
    held, shown, value = found.reserved_peak, found.device_peak, case["measured"]["bytes"]
    if case["measured"]["metric"] == "allocated":
        expected, low, high = found.allocated_peak, found.interval.low, found.interval.high
    else:
        expected, low, high = held.expected, held.low, held.high
    seen = case["measured"].get("device_bytes")
    device = _against(shown.expected, shown.low, shown.high, seen) if seen else None
    return Measured(case, *_against(expected, low, high, value), device)


def _against(expected: int, low: int, high: int, value: int) -> tuple[float, bool, float]:
    return expected / value - 1, low <= value <= high, (high - low) / value


class Figures(NamedTuple):
    """Of a set of rows: how many, median and 90th percentile of the error, coverage, median width."""

    rows: int
    median: float
    ninth: float
    inside: float
    width: float


def figures(rows: list[tuple[float, bool, float]]) -> Figures:
    """The figures of (error, inside, width) rows."""
    errors = sorted(abs(error) for error, _, _ in rows)
    inside = sum(held for _, held, _ in rows) / len(rows)
    return Figures(
        len(rows), median(errors), errors[int(0.9 * (len(errors) - 1))], inside, median(width for _, _, width in rows)
    )
