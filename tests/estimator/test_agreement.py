"""The estimates against random runs that the shipped tracer measured (``python -m docs.agreement``)."""

from statistics import median

from docs import agreement
from tests.estimator.cases import cases, outcome

ROWS = agreement.ROWS.name


def test_analytic_and_traced_peaks_agree() -> None:
    errors = sorted(abs(outcome(case).error) for case in cases(ROWS))
    assert len(errors) >= 150
    assert median(errors) <= 0.001
    assert errors[int(0.95 * len(errors))] <= 0.01
    assert errors[-1] <= 0.03
    assert sum(error <= 1e-5 for error in errors) >= 0.9 * len(errors)


def test_the_rows_cover_families_and_modes() -> None:
    runs = [case["run"] for case in cases(ROWS)]
    assert len({run["model"]["model_type"] for run in runs}) >= 50
    for field, least in (
        ("method", 5),
        ("precision", 4),
        ("optimizer", 10),
        ("gradient_checkpointing", 3),
        ("loss", 3),
    ):
        assert len({run[field] for run in runs if run.get(field)}) >= least, field
    assert any(run["task"] == "infer" for run in runs)


def test_the_table_is_of_these_rows() -> None:
    assert agreement.PAGE.read_text("utf-8") == agreement.page(), "run python -m docs.agreement --page"
