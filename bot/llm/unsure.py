"""Whether the grammar is unsure of a message: cheap, so that a sure one loads nothing."""

from bot.answer import Answer
from bot.language import has_chinese

FEWEST_WORDS = 4
"""A message of fewer words that the grammar takes for chatter is chatter."""


def is_unsure(text: str, first: Answer) -> bool:
    """Whether the grammar's reply is a question, a refusal, or silence to more than a few words."""
    if first.reply == "ignore":
        return len(text.split()) >= FEWEST_WORDS or (has_chinese(text) and len(text) > FEWEST_WORDS)
    if first.reply == "refuse":
        return first.question != "diagnose"  # a picture, which no model is shown
    return first.reply == "clarify" and not first.invalid
