"""Rendered answers, compared with the files of ``tests/golden`` (set UPDATE_GOLDEN=1 to write them anew)."""

import os
from pathlib import Path

import pytest

from bot.answer import Answer
from bot.answers.render import rendered
from bot.intake.doubts import Doubt
from estimator.schema import Alternative, Estimate, Fit, Largest, Problem, Range
from tests.conftest import GIB, made_estimate

GOLDEN = Path(__file__).parents[2] / "golden"
RUN = {"model": "0.5b", "method": "lora", "gpu": "8GB", "resolved_model": "Qwen/Qwen2.5-0.5B", "params_b": 0.5}
TOO_BIG = made_estimate(
    fit=Fit(verdict="does_not_fit", usable=GIB, margin=-GIB, confidence=0.01), max=Largest(micro_batch=0, seq_len=0)
)
TIGHT = made_estimate(fit=Fit(verdict="tight", usable=int(2.7 * GIB), margin=0, confidence=0.6))
OTHER = Alternative(
    change={"loss": "standard"},
    why="the plain loss, with full logits",
    why_zh="若使用普通损失（完整 logits）",
    allocated_peak=int(3.6 * GIB),
    device_peak=Range(low=4 * GIB, expected=5 * GIB, high=8 * GIB),
    verdict="tight",
)
ANSWERS = {
    "fits": Answer(question="fit", runs=[RUN], estimates=[made_estimate(alternatives=[OTHER])]),
    "too_big": Answer(question="fit", runs=[{**RUN, "gpu": "RTX 3090", "gpu_count": 2}], estimates=[TOO_BIG]),
    "open_method": Answer(
        question="fit",
        missing=["method"],
        runs=[{**RUN, "method": "full"}, RUN],
        estimates=[made_estimate(run=None), Estimate(error=Problem(message="no", message_zh="不行"))],
    ),
    "no_card": Answer(
        question="need_memory",
        missing=["gpu"],
        runs=[{"model": "0.5b"}],
        estimates=[made_estimate(fit=Fit(), max=None)],
    ),
    "missing_model": Answer(reply="clarify", missing=["model"]),
    "invalid": Answer(reply="clarify", invalid=["micro_batch", "seq_len"]),
    "refuse": Answer(reply="refuse"),
    "help": Answer(question="help"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_rendered_answer(name: str, lang: str) -> None:
    compare(f"{name}.{lang}.txt", rendered(ANSWERS[name].model_copy(update={"lang": lang})).text)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_explained_answer(lang: str) -> None:
    compare(f"explain.{lang}.txt", rendered(ANSWERS["fits"].model_copy(update={"lang": lang}), explain=True).text)


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", "utf-8")
    assert path.read_text("utf-8") == text + "\n"


def test_to_ignore_is_to_say_nothing() -> None:
    assert rendered(Answer(reply="ignore")).text == ""


def test_an_unknown_value_is_repeated_harmlessly() -> None:
    text = rendered(Answer(reply="clarify"), [Doubt("value", "optimizer", "**sgdd** @everyone")]).text
    assert text == 'I cannot read "sgdd everyone" as optimizer: leave it out or write it another way.'


def test_every_number_of_the_text_has_its_source() -> None:
    found = rendered(ANSWERS["fits"])
    told = {figure.value for figure in found.numbers}
    assert {1.9, 3.6, 2.4, 2.9, 7.6, 0.92, 0.43, 12, 11_300, 1024, 494_032_768} <= told
    assert all(figure.source.startswith("estimates[0]") for figure in found.numbers)
