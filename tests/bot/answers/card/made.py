"""Answers with every part that a card can hold, figures made up."""

from typing import Any

from bot.answer import Answer
from estimator.schema import Assumption, Fit, Plan, Step
from tests.conftest import GIB, made_estimate

RUN: dict[str, Any] = {"model": "7b", "method": "full", "gpu": "RTX 3090", "resolved_model": "Qwen/Qwen2.5-7B"}


def made_step(name: str, **changes: Any) -> Step:
    """A step that saves 2 GiB."""
    step = Step(
        id=name,
        title="8-bit AdamW",
        title_zh="8 位 AdamW",
        note="same loss in practice",
        note_zh="损失基本不变",
        change={"optimizer": "adamw-8bit"},
        allocated_peak=int(5.5 * GIB),
        saves=2 * GIB,
        speed_cost="small",
        quality_cost="none",
        money_cost="none",
        verdict="fits",
        commands=["--optim adamw_8bit"],
    )
    return step.model_copy(update=changes)


def too_big(**changes: Any) -> Answer:
    """A run that does not fit, with two steps and the plan that holds both."""
    smaller = {"title": "micro-batch 1 with 8 accumulation steps", "title_zh": "单卡批大小降到 1，梯度累积 8 步"}
    steps = [
        made_step("micro-batch", **smaller, change={"micro_batch": 1, "grad_accum": 8}, verdict="does_not_fit"),
        made_step("adamw-8bit", speed_cost="none", note="", note_zh=""),
    ]
    plan = Plan(
        steps=["micro-batch", "adamw-8bit"],
        chain=steps,
        change={"micro_batch": 1, "grad_accum": 8, "optimizer": "adamw-8bit"},
        allocated_peak=int(3.5 * GIB),
        verdict="fits",
        commands=["--per_device_train_batch_size 1 --gradient_accumulation_steps 8", "--optim adamw_8bit"],
    )
    found = made_estimate(
        fit=Fit(verdict="does_not_fit", usable=int(1.5 * GIB), margin=-GIB, confidence=0.01),
        downgrades=steps,
        plan=plan,
        notes=[Assumption(field="gpu", value="RTX 3090", why="the display takes some", why_zh="显示器会占用一些")],
    )
    return Answer(question="fit", runs=[RUN], estimates=[found]).model_copy(update=changes)
