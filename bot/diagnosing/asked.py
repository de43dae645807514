"""Questions that the knowledge answers, and messages that are pictures."""

import re

from bot.diagnosing.runs import known_of
from bot.intake.understand import Question
from knowledge.search import answering, likeliest

KNOWN_KINDS = ("explain", "advice", "diagnose")
"""Kinds of questions that entries answer."""
PICTURE = re.compile(r"!\[[^\]]*\]\(|https?://\S+\.(?:png|jpe?g|webp|gif|bmp)\b|\b\S+\.(?:png|jpe?g|webp|bmp)\b", re.I)
FEW_WORDS = 8
WORDS = re.compile(r"[a-z]+|[\u3400-\u9fff]", re.I)
LATIN_LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|\S+\.(?:png|jpe?g|webp|gif|bmp)\S*", re.I)


def is_picture(text: str) -> bool:
    """Whether a message is a picture with a few words at most."""
    return PICTURE.search(text) is not None and len(WORDS.findall(LATIN_LINK.sub(" ", text))) <= FEW_WORDS


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
    near = answering(text)
    if near and (near.sure or (question.reply == "clarify" and question.question in KNOWN_KINDS)):
        return [near.entry.id]
    if question.reply == "ignore" or question.question not in KNOWN_KINDS:
        return []
    cause = likeliest(text, known_of(question.spoken[0]) if question.spoken else {})
    return [cause.id] if cause else []
