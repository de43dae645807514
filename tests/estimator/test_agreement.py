"""The estimates against random runs that the shipped tracer measured (``python -m docs.agreement``)."""

from statistics import median

from docs import agreement
from tests.estimator.cases import cases, outcome

ROWS = agreement.ROWS.name
KNOWN = {"r8-002"}
"""Mamba 2 under TRL's chunked loss: the estimate's backward of the loss is 14 % short, and not explained yet."""


def test_analytic_and_traced_peaks_agree() -> None:
    errors = sorted(abs(outcome(case).error) for case in cases(ROWS) if case["id"] not in KNOWN)
    assert len(errors) >= 70
    assert median(errors) <= 0.001
    assert errors[int(0.95 * len(errors))] <= 0.01
    assert errors[-1] <= 0.03


def test_the_rows_cover_families_and_modes() -> None:
    runs = [case["run"] for case in cases(ROWS)]
    assert len({run["model"]["model_type"] for run in runs}) >= 30
    for field, least in (("method", 5), ("precision", 4), ("optimizer", 5), ("gradient_checkpointing", 3), ("loss", 2)):
        assert len({run[field] for run in runs if run.get(field)}) >= least, field
    assert any(run["task"] == "infer" for run in runs)


def test_the_table_is_of_these_rows() -> None:
    assert agreement.PAGE.read_text("utf-8") == agreement.page(), "run python -m docs.agreement --page"
