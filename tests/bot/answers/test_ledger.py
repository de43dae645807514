"""Every number in a text is noted with its place."""

import pytest

from bot.answer import Answer
from bot.answers.ledger import Ledger
from estimator.schema import Estimate
from tests.conftest import made_estimate


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Answer(runs=[{"model": "7b"}], estimates=[made_estimate()]))


def test_paths_reach_into_lists_and_objects(ledger: Ledger) -> None:
    assert ledger.at("estimates[0].per_gpu.at_peak[2].item") == "activations"
    assert ledger.at("runs[0].model") == "7b"


def test_bytes_are_told_in_gib_and_noted(ledger: Ledger) -> None:
    assert ledger.gib("estimates[0].per_gpu.allocated_peak") == "1.9 GiB"
    assert ledger.figures[0].model_dump() == {
        "value": 1.9,
        "unit": "GiB",
        "from": "estimates[0].per_gpu.allocated_peak",
    }


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.00 GiB"),
        (512, "512 B"),
        (2 * 2**20, "2.0 MiB"),
        (2**29, "0.50 GiB"),
        (2**30, "1.0 GiB"),
        (80 * 2**30, "80.0 GiB"),
    ],
)
def test_sizes_take_a_unit_in_which_they_can_be_read(size: int, text: str) -> None:
    found = made_estimate(fit=made_estimate().fit.model_copy(update={"usable": size}))
    assert Ledger(Answer(estimates=[found])).gib("estimates[0].fit.usable") == text


def test_numbers_inside_reasons_are_noted(ledger: Ledger, estimate: Estimate) -> None:
    ledger.words("estimates[0].per_gpu.at_peak[0].why")
    assert [figure.value for figure in ledger.figures] == [494_032_768, 2]
    assert estimate.per_gpu is not None


@pytest.mark.parametrize(
    ("why", "figures"),
    [
        ("494,032,768 parameters x 2 B", [494_032_768, 2]),
        ("共 494,032,768 个参数", [494_032_768]),
        ("trl 1.16.0 trains this stage, with peft 0.21 in bf16", []),
        ("took RTX 4090 for Qwen2.5-7B, of 24 GB", [24]),
        ("on by default in transformers 5", []),
        ("24 layers x 1,024 tokens.", [24, 1024]),
    ],
)
def test_versions_and_names_are_no_figures(why: str, figures: list[float], ledger: Ledger) -> None:
    block = ledger.answer.estimates[0].per_gpu.at_peak[0]  # type: ignore[union-attr]
    block.why = why
    assert ledger.words("estimates[0].per_gpu.at_peak[0].why") == why
    assert [figure.value for figure in ledger.figures] == figures
