"""The estimates against steps that were traced to the byte, and against a real card."""

from statistics import median

import pytest

from tests.estimator.cases import Outcome, cases, outcome, report


def errors(outcomes: list[Outcome]) -> list[float]:
    return sorted(abs(outcome.error) for outcome in outcomes)


def test_traced_steps(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome(case) for case in cases("traced.jsonl")]
    with capsys.disabled():
        print("\ntraced:", report(outcomes))
    found = errors(outcomes)
    assert median(found) <= 0.001
    assert found[int(0.9 * (len(found) - 1))] <= 0.005
    assert found[-1] <= 0.02


def test_real_a6000(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome(case) for case in cases("measured_a6000.jsonl")]
    with capsys.disabled():
        print("\nRTX A6000:", report(outcomes))
    found = errors(outcomes)
    assert median(found) <= 0.003
    assert found[-1] <= 0.025
