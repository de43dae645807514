"""Traced and measured cases, and how far the estimates are from them."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pydantic import ValidationError

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Run

DATA = Path(__file__).parents[1] / "data"


class Outcome(NamedTuple):
    """A case with the relative error of its estimate."""

    case: dict[str, Any]
    estimated: int
    error: float


def cases(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a case file."""
    with (DATA / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def outcome(case: dict[str, Any]) -> Outcome:
    """The estimate of one case against its measured bytes."""
    run = case["run"] | ({"details": case["extra"]} if case.get("extra") else {})
    answer = estimate(Run.model_validate(run)).per_gpu
    assert answer is not None
    got = answer.allocated_peak
    if case["measured"]["metric"] == "live":
        got -= sum(block.bytes for block in answer.at_peak if block.item in ("workspace", "allocator_rounding"))
    return Outcome(case, got, got / case["measured"]["bytes"] - 1)


def answered(name: str) -> tuple[list[Outcome], list[str]]:
    """The outcomes of a case file, and the cases that are refused."""
    outcomes, refused = [], []
    for case in cases(name):
        try:
            outcomes.append(outcome(case))
        except (EstimatorError, ValidationError):
            refused.append(str(case.get("arch", case["id"])))
    return outcomes, refused


def report(outcomes: list[Outcome]) -> str:
    """Figures and the worst five, for people."""
    errors = sorted(abs(outcome.error) for outcome in outcomes)
    ninth = errors[int(0.9 * (len(errors) - 1))]
    lines = [f"{len(errors)} cases: median {median(errors):.4%}, 90th percentile {ninth:.4%}, worst {errors[-1]:.3%}"]
    for outcome in sorted(outcomes, key=lambda outcome: -abs(outcome.error))[:5]:
        case = outcome.case
        lines.append(f"{outcome.error:+.3%} {case['id']} {case.get('arch', '')} {json.dumps(case['run'])[:200]}")
    return "\n".join(lines)
