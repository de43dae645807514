"""The buttons of a card."""

import json
import re
from typing import Any

from bot.answers.card.shape import LONGEST_LABEL, MOST_ACTIONS, Action
from bot.answers.card.steps import listed, title_of
from bot.answers.card.table import clipped
from bot.answers.card.voice import Voice
from bot.answers.layout import width
from bot.texts import texts
from estimator.schema import Estimate, Run

_MORE = re.compile(r" instead of .*$| ?[(（][^()（）]*[)）]$|, [^,]*$")
MOST_STEPS = 4
"""Steps with a button of their own."""
MOST_READINGS = 8


def of_one(voice: Voice) -> tuple[Action, ...]:
    """Apply a step, show the math, what if, copy flags: for a card of one run."""
    found = voice.answer.estimates[0]
    steps = [*_plan(voice, found), *_steps(voice, found)]
    flags = [labelled("flags", voice.say("button_flags"))] if any(one.commands for one in found.downgrades) else []
    return tuple([*steps, labelled("math", voice.say("button_math")), *flags, *_what_ifs(voice, found)][:MOST_ACTIONS])


def of_readings(voice: Voice) -> tuple[Action, ...]:
    """One button for each run of several that has an estimate."""
    runs = [index for index, found in enumerate(voice.answer.estimates) if found.per_gpu]
    return tuple(labelled("reading", voice.label(index), str(index)) for index in runs[:MOST_READINGS])


def labelled(kind: Any, label: str, argument: str = "0", change: dict[str, Any] | None = None) -> Action:
    """An action whose label a phone shows in full."""
    return Action(kind, clipped(label, LONGEST_LABEL), argument, change or {})


def what_if(label: str, field: str, value: str | int) -> Action:
    """A button that changes one field of the run."""
    return labelled("what_if", label, f"{field}={json.dumps(value)}", {field: value})


def change_of(argument: str) -> dict[str, Any]:
    """The partial Run that the argument of a what-if names. Raises ValueError."""
    field, sign, value = argument.partition("=")
    if not sign or field not in Run.model_fields:
        raise ValueError(f"no field of a run: {field!r}")
    return {field: json.loads(value)}


def _plan(voice: Voice, found: Estimate) -> list[Action]:
    if not found.plan or len(found.plan.steps) < 2:
        return []
    return [labelled("apply", voice.say("button_plan", count=len(found.plan.steps)), "plan", found.plan.change)]


def _steps(voice: Voice, found: Estimate) -> list[Action]:
    return [
        labelled("apply", _step_label(voice, number, title_of(voice, step)), step.id, step.change)
        for number, step in enumerate(listed(found)[:MOST_STEPS], start=1)
    ]


def _step_label(voice: Voice, number: int, title: str) -> str:
    """A step on a button: what stands in brackets, or instead of what, is left out where there is no room for it."""
    whole = voice.say("button_step", number=number, title=title)
    short = voice.say("button_step", number=number, title=_MORE.sub("", title))
    return whole if width(whole) <= LONGEST_LABEL else short


def _what_ifs(voice: Voice, found: Estimate) -> list[Action]:
    """The other loss, the other checkpointing, and a card where none was named."""
    smallest = next(iter(voice.answer.smallest_card_gb), None)
    card = [what_if(voice.say("button_card", size=smallest), "gpu", f"{smallest}GB")] if smallest else []
    run = found.run
    if run is None or run.task in ("infer", "serve"):
        return card
    loss = "chunked" if run.loss in (None, "standard") else "standard"
    kept = "full" if run.gradient_checkpointing in (None, False, "none") else "none"
    return [
        *card,
        what_if(voice.say(f"button_loss_{loss}"), "loss", loss),
        what_if(voice.say(f"button_checkpointing_{kept}"), "gradient_checkpointing", kept),
    ]


def examples(lang: str) -> list[str]:
    """The questions that the help shows; an example button's argument counts them."""
    return list(texts(lang)["help"]["examples"])
