"""Questions that the knowledge answers, and messages that are pictures."""

import re
from functools import cache
from typing import TYPE_CHECKING

from bot.intake.understand import Question

if TYPE_CHECKING:
    from knowledge.diagnosis import Diagnosis
    from knowledge.reading import Entry

KNOWN_KINDS = ("explain", "advice", "diagnose")
"""Kinds of questions that entries answer."""
SHORTEST = 36
"""Bytes of a message that tells more than which run is meant."""
OF_A_RUN = ("model", "gpu", "gpu_count", "micro_batch", "seq_len", "method", "parallel")
SIZE = r"(?i)\d ?(?:[GM]i?B?)(?![a-z])|\d ?%"
SURE = 0.5
"""Score from which a cause answers why a run failed that is only asked about, or told of."""
MARKS = ("![", ".png", ".jp", ".webp", ".gif", ".bmp")
PICTURE = r"!\[[^\]]*\]\(|https?://\S+\.(?:png|jpe?g|webp|gif|bmp)\b|\b\S+\.(?:png|jpe?g|webp|bmp)\b"
LINK = r"!?\[[^\]]*\]\([^)]*\)|\S+\.(?:png|jpe?g|webp|gif|bmp)\S*"
WORD = r"[a-z]+|[\u3400-\u9fff]"
FEW_WORDS = 8


def is_picture(text: str) -> bool:
    """Whether a message is a picture with a few words at most."""
    lowered = text.lower()
    if not any(mark in lowered for mark in MARKS):
        return False
    picture, link, word = _patterns()
    return picture.search(lowered) is not None and len(word.findall(link.sub(" ", lowered))) <= FEW_WORDS


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in (PICTURE, LINK, WORD))


def entries_for(text: str, question: Question) -> list[str]:
    """The entries that answer a message: beside estimates where it explains or advises, else alone.

    A message that is not for us is answered only when an entry's own phrases occur in it.
    """
    if question.reply == "refuse" or (question.reply == "clarify" and (question.invalid or question.doubts)):
        return []
    if question.reply == "answer" and question.question not in (*KNOWN_KINDS, "help"):
        return []
    if "samples" in question.missing and any(run.get("model") for run in question.spoken):
        return []  # time or cost of a run: how much there is to do is asked back
    if question.question == "fit" and any(run.get("gpu") for run in question.spoken):
        return []  # whether something fits a card that is named: the model is asked back
    from knowledge.search import asked_for, nearest  # most questions are about a run

    if asked := asked_for(text):
        return [asked.id]
    if question.reply == "ignore" or question.question not in KNOWN_KINDS:
        return []
    found = nearest(text) if question.reply == "clarify" else None
    found = found or _likeliest(text, question)
    return [found.id] if found else []


def told_of(text: str, question: Question) -> str:
    """What a message tells of that asks nothing: "diagnose" where something failed, "explain" where it takes so much.

    A failure of a run without a model is one, too: what it says may name the cause. Only where nothing is said of a run
    does an entry's own answer to a question of many go before.
    """
    open_ones = KNOWN_KINDS if _is_of_a_run(text, question) else ("diagnose",)
    stuck = question.reply == "clarify" and question.question in open_ones and not (question.invalid or question.doubts)
    brief = question.reply == "answer" and (text.startswith("/") or len(text.encode()) < SHORTEST)
    if question.reply == "refuse" or brief or (question.cued and question.reply != "ignore" and not stuck):
        return ""
    from knowledge.search import asked_for, says  # most questions are asked

    if question.reply != "answer" and open_ones != KNOWN_KINDS and asked_for(text):
        return ""
    if not says("ours", text):
        return ""
    return "diagnose" if says("failing", text) else "explain" if says("taking", text) else ""


def _is_of_a_run(text: str, question: Question) -> bool:
    """Whether sizes or parts of a run are named."""
    return any(run.get(name) for run in question.spoken for name in OF_A_RUN) or re.search(SIZE, text) is not None


def is_sure(found: "Diagnosis | None") -> bool:
    """Whether the evidence clearly speaks for a cause."""
    return found is not None and bool(found.causes) and found.causes[0].score >= SURE


def _likeliest(text: str, question: Question) -> "Entry | None":
    """The cause that the words of a question speak for."""
    from bot.diagnosing.runs import known_of
    from knowledge.search import likeliest

    return likeliest(text, known_of(question.spoken[0]) if question.spoken else {})
