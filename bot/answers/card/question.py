"""Cards without an estimate: what is asked back, help, and what is not ours."""

import re
from itertools import groupby

from bot.answers.card.actions import examples, labelled, what_if
from bot.answers.card.shape import Action, Card
from bot.answers.card.voice import Voice
from bot.answers.render import rendered

MOST_CANDIDATES = 5
_POINT = re.compile(r"\d+\. ")
SIZES = ("1.5b", "7b", "14b", "32b")
"""Sizes offered where no model is named."""


def question_card(voice: Voice) -> Card:
    """What is asked back, with what may have been meant as buttons."""
    text = voice.answer.text or voice.say("not_understood")
    return Card("question", voice.say("title_question"), lead=text[:3_000], actions=_candidates(voice))


def help_card(voice: Voice) -> Card:
    """What can be asked, with three examples to press."""
    lines = voice.template("card_help")
    told = "\n".join(f"> {example}" for example in examples(voice.lang))
    buttons = [labelled("example", one, str(number)) for number, one in enumerate(examples(voice.lang)[1:4], start=1)]
    return Card("help", voice.say("title_help"), lead=lines[0], sections=(told, *lines[1:]), actions=tuple(buttons))


def told_card(voice: Voice) -> Card:
    """Why a run failed, or what is known about what was asked."""
    if voice.answer.diagnosis is None:
        return Card("told", voice.say("title_known"), lead=rendered(voice.answer, card=True).text[:3_000])
    lines = rendered(voice.answer, card=True).text[:3_000].splitlines()
    lead, *rest = ("\n".join(group) for _, group in groupby(lines, key=lambda line: bool(_POINT.match(line))))
    return Card("told", voice.say("title_diagnosis"), lead=lead, sections=tuple(rest))


def refusal_card(voice: Voice) -> Card:
    """One sentence that says what is ours."""
    return Card("refuse", voice.say("title_refuse"), lead=voice.answer.text)


def _candidates(voice: Voice) -> tuple[Action, ...]:
    """A button for each value that may have been meant; sizes where no model is named."""
    answer = voice.answer
    if answer.choices:
        found = {(one.field, str(one.value)): what_if(str(one.value), one.field, one.value) for one in answer.choices}
        return tuple(found.values())[:MOST_CANDIDATES]
    if "model" in answer.missing and not any(run.get("model") for run in answer.runs) and not answer.invalid:
        return tuple(what_if(size.upper(), "model", size) for size in SIZES)
    return ()
