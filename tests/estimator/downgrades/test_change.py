"""Partial runs."""

from typing import Any

import pytest
from pydantic import ValidationError

from estimator.downgrades import applied
from estimator.downgrades.change import difference
from estimator.schema import Run

BASE = Run.model_validate(
    {"model": "7b", "micro_batch": 8, "adapter": {"rank": 64, "targets": "qv"}, "details": {"objective": "mlm"}}
)


def test_groups_are_merged_and_the_rest_stays() -> None:
    after = applied(BASE, {"micro_batch": 2, "grad_accum": 4, "adapter": {"rank": 16}})
    assert (after.micro_batch, after.grad_accum, after.model) == (2, 4, "7b")
    assert after.adapter is not None
    assert (after.adapter.rank, after.adapter.targets) == (16, "qv")
    assert BASE.micro_batch == 8


def test_null_takes_away_and_lengths_are_replaced() -> None:
    before = applied(BASE, {"weight_format": "nf4", "seq_len": {"mean": 300, "max": 512}})
    after = applied(before, {"weight_format": None, "seq_len": 256, "adapter": {"targets": None}})
    assert (after.weight_format, after.seq_len) == (None, 256)
    assert after.adapter is not None
    assert after.adapter.targets is None


@pytest.mark.parametrize("change", [{"micro_bach": 2}, {"micro_batch": 0}, {"adapter": {"rnk": 4}}])
def test_what_no_run_has_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        applied(BASE, change)


@pytest.mark.parametrize(
    "change",
    [
        {"micro_batch": 1},
        {"adapter": None, "method": "full"},
        {"kv_cache": {"dtype": "q8_0"}},
        {"adapter": {"rank": 8}},
        {"seq_len": {"mean": 300.0, "max": 512}},
    ],
)
def test_the_difference_leads_back(change: dict[str, Any]) -> None:
    after = applied(BASE, change)
    assert applied(BASE, difference(BASE, after)) == after
