"""Rendered answers, compared with the files of ``tests/golden`` (set UPDATE_GOLDEN=1 to write them anew)."""

import os
from pathlib import Path

import pytest

from bot.answer import Answer
from bot.answers.render import rendered
from bot.intake.doubts import Doubt
from estimator.schema import Alternative, Estimate, Fit, Largest, Plan, Problem, Range, Run, Step
from tests.conftest import GIB, made_estimate

GOLDEN = Path(__file__).parents[2] / "golden"
RUN = {"model": "0.5b", "method": "lora", "gpu": "8GB", "resolved_model": "Qwen/Qwen2.5-0.5B", "params_b": 0.5}
FUSED = Step(
    id="fused-loss", title="fused loss, without the full logits", title_zh="融合损失，不产生完整 logits",
    note="same loss up to rounding", note_zh="损失值只差舍入误差", change={"loss": "fused"},
    allocated_peak=int(1.5 * GIB), saves=int(0.4 * GIB), speed_cost="none", quality_cost="none", money_cost="none",
    verdict="does_not_fit", commands=["--use_liger_kernel true"],
)  # fmt: skip
QLORA = Step(
    id="qlora", title="QLoRA: frozen weights in nf4", title_zh="改用 QLoRA：冻结权重用 nf4",
    note="weights are unpacked on the way", note_zh="计算时要反量化", change={"method": "qlora"},
    allocated_peak=int(0.9 * GIB), saves=GIB, speed_cost="small", quality_cost="small", money_cost="none",
    verdict="fits", commands=["--load_in_4bit", "--use_peft"],
)  # fmt: skip
CARD = QLORA.model_copy(
    update={"id": "card-8gb", "title": "8 GB card", "title_zh": "换 8 GB 显卡", "saves": 0, "money_cost": "large"}
    | {"speed_cost": "none", "quality_cost": "none", "allocated_peak": int(1.9 * GIB), "commands": []}
    | {"note": "nothing changes for the result", "note_zh": "结果不变"}
)
TOO_BIG = made_estimate(
    fit=Fit(verdict="does_not_fit", usable=GIB, margin=-GIB, confidence=0.01),
    max=Largest(micro_batch=0, seq_len=0),
    run=Run(model="0.5b", method="lora", precision="bf16", gpu="8GB", task="train", loss="chunked", framework="trl"),
    downgrades=[FUSED, QLORA, CARD],
    plan=Plan(
        steps=["fused-loss", "qlora"], chain=[FUSED, QLORA], change=FUSED.change | QLORA.change,
        allocated_peak=int(0.8 * GIB), verdict="fits", commands=[*FUSED.commands, *QLORA.commands],
    ),
)  # fmt: skip
BOUGHT = TOO_BIG.model_copy(
    update={"plan": Plan(steps=["card-8gb"], chain=[CARD], allocated_peak=int(1.9 * GIB), verdict="fits")}
)
NOWHERE = TOO_BIG.model_copy(update={"downgrades": [], "plan": None})
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
    "advice": Answer(question="advice", runs=[RUN], estimates=[TOO_BIG]),
    "bought": Answer(question="fit", runs=[RUN], estimates=[BOUGHT]),
    "nowhere": Answer(question="fit", runs=[RUN], estimates=[NOWHERE]),
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


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_explained_answer_with_steps(lang: str) -> None:
    compare(
        f"explain_steps.{lang}.txt", rendered(ANSWERS["advice"].model_copy(update={"lang": lang}), explain=True).text
    )


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
