"""Start-ups that engines printed, against the estimates: each quantity within its limit."""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Run

ROWS = Path(__file__).parents[2] / "data" / "serving_published.jsonl"
UNKNOWN = {"sgl012"}
"""Models that the catalogue does not have."""

LIMITS = {
    "weights_bytes": (0.003, 0.05),
    "kv_bytes": (0.01, 0.08),
    "kv_tokens": (0.001, 0.12),
    "concurrency": (0.001, 0.06),
    "compute_buffer_bytes": (0.001, 0.06),
    "activation_peak_bytes": (0.01, 0.60),
}
"""Median and 90th percentile of the relative error."""


@cache
def errors() -> dict[str, list[float]]:
    found = defaultdict(list)
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"] not in UNKNOWN and row["trust"] != "low":
            for name, error in errors_of(row):
                found[name].append(error)
    return found


def errors_of(row: dict[str, Any]) -> list[tuple[str, float]]:
    serving = estimate(Run.model_validate(row["run"])).serving
    assert serving is not None
    found = []
    for name, true in row["measured"].items():
        if true and true > 0 and hasattr(serving, name):
            slack = (row.get("resolution_bytes") or {}).get(name, 0) / 2
            got = getattr(serving, name)
            found.append((name, 1.0 if got is None else max(0.0, abs(got - true) - slack) / true))
    return found


@pytest.mark.parametrize("name", LIMITS)
def test_published_figures_are_met(name: str) -> None:
    found = sorted(errors()[name])
    assert median(found) <= LIMITS[name][0]
    assert found[int(0.9 * (len(found) - 1))] <= LIMITS[name][1]


def test_every_row_is_answered() -> None:
    refused = set()
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        try:
            estimate(Run.model_validate(row["run"]))
        except EstimatorError:
            refused.add(row["id"])
    assert refused == UNKNOWN
