"""What holds of every run, whatever it is: properties over random runs."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from estimator.downgrades.facts import facts, ranks
from estimator.downgrades.moves import INFERENCE, TRAINING
from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from tests.estimator.downgrades.promises import keeps_its_promises, peak
from tests.estimator.runs import large, runs

SIZES = ("6GB", "8GB", "12GB", "16GB", "24GB", "32GB", "48GB", "80GB", "141GB", "192GB")


def estimated(fields: dict[str, Any]) -> Estimate:
    """The estimate of a run; runs that are refused are not looked at."""
    try:
        return estimate(Run.model_validate(fields))
    except EstimatorError:
        assume(False)
        raise


@settings(max_examples=30, deadline=None)
@given(runs())
def test_every_step_and_plan_keeps_its_promises(fields: dict[str, Any]) -> None:
    estimated(fields)
    keeps_its_promises(Run.model_validate(fields))


@settings(max_examples=20, deadline=None)
@given(large())
def test_so_do_those_of_models_that_need_other_hardware(fields: dict[str, Any]) -> None:
    estimated(fields)
    found = keeps_its_promises(Run.model_validate(fields))
    for step in [*found.downgrades, *(found.plan.chain if found.plan else [])]:
        if step.money_cost != "none":
            assert step.verdict == "fits"
            assert step.title and step.title_zh


@settings(max_examples=20, deadline=None)
@given(runs())
def test_the_same_run_gets_the_same_steps(fields: dict[str, Any]) -> None:
    first, again = estimated(fields), estimated(fields)
    assert first.downgrades == again.downgrades
    assert first.plan == again.plan


@settings(max_examples=20, deadline=None)
@given(runs())
def test_more_memory_never_turns_fits_into_does_not_fit(fields: dict[str, Any]) -> None:
    order = ("does_not_fit", "tight", "fits")
    if fields["task"] != "train":
        fields = {"context_len": 8192} | fields  # engines take a longer context on a larger card: another run
    verdicts = [order.index(estimated(fields | {"gpu": size}).fit.verdict or "") for size in SIZES]
    assert verdicts == sorted(verdicts)


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 7), st.integers(1, 300))
def test_the_peak_never_falls_when_batch_or_length_grows(fields: dict[str, Any], more: int, longer: int) -> None:
    fields = {name: value for name, value in fields.items() if name != "gpu"}
    batch, length = ("micro_batch", "seq_len") if fields["task"] == "train" else ("concurrency", "context_len")
    fields = {batch: 1, length: 500} | fields
    before = peak(estimated(fields))
    for change in ({batch: fields[batch] + more}, {length: fields[length] + longer}):
        assert peak(estimated(fields | change)) >= before, change


def test_nothing_is_proposed_without_a_card() -> None:
    found = estimate(Run(model="llama-3.1-70b", method="full"))
    assert (found.downgrades, found.plan) == ([], None)


@pytest.mark.parametrize("order", ["document", "lossless"])
def test_every_move_has_a_place_in_each_order(order: str) -> None:
    moves = {move.name for move in (*TRAINING, *INFERENCE)}
    assert set(ranks(order)) >= moves
    assert all(facts(move)["title_zh"] for move in ranks(order))
