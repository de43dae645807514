"""2,000 random runs: how long an estimate with search and largest-that-fits takes, and that every promise is kept.

``pytest --benchmark-only tests/benchmarks/test_downgrades_speed.py -s`` prints the figures (five minutes or more).
``RUNS`` in the environment makes it shorter: 500 take one to two minutes.
"""

import os
import time
from statistics import quantiles
from typing import Any

from hypothesis import HealthCheck, given, settings
from pytest_benchmark.fixture import BenchmarkFixture

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.downgrades.promises import keeps_its_promises
from tests.estimator.runs import runs

COUNT = int(os.environ.get("RUNS", "2000"))
REPEATS = 3


def seconds(run: Run) -> float:
    """The least processor time of a warm estimate: others work on the machine too."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        estimate(run)
        times.append(time.process_time() - start)
    return min(times)


def measured(check: bool) -> tuple[list[float], list[float]]:
    """Times of the runs that fit and of those that do not."""
    fitting: list[float] = []
    lowered: list[float] = []

    @settings(
        max_examples=COUNT, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(runs())
    def one(fields: dict[str, Any]) -> None:
        run = Run.model_validate(fields)
        try:
            found = keeps_its_promises(run) if check else estimate(run)
        except EstimatorError:
            return
        (fitting if found.fit.verdict == "fits" else lowered).append(seconds(run))

    one()
    return fitting, lowered


def test_two_thousand_runs(benchmark: BenchmarkFixture) -> None:
    fitting, lowered = benchmark.pedantic(lambda: measured(True), rounds=1, iterations=1)
    for name, times in (("in all", fitting + lowered), ("that fit", fitting), ("that do not fit", lowered)):
        cuts = quantiles(times, n=100)
        print(f"{len(times)} runs {name}: median {cuts[49] * 1e3:.2f} ms, 99th percentile {cuts[98] * 1e3:.2f} ms")
    cuts = quantiles(lowered, n=100)
    assert cuts[49] <= 0.008
    assert cuts[98] <= 0.020
