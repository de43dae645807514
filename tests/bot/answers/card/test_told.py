"""Cards of a wreck and of prices: no line of theirs is broken for a terminal, and labels stand out."""

import pytest

from bot import service
from bot.answers.card import Card, cards_of
from bot.answers.layout import TEXT_WIDTH, width
from tests.bot.discord.test_logs import OOM

LABELS = {"en": "**To confirm**: ", "zh": "**确认方法**："}


def told(lang: str) -> Card:
    answer = service.ask("training qwen2.5 7b lora on a 4090 fails\n" + OOM, lang=lang)
    assert any(width(line) <= TEXT_WIDTH for line in answer.text.splitlines())
    (card,) = cards_of(answer)
    return card


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_paragraph_of_a_wreck_is_one_line(lang: str) -> None:
    lines = told(lang).lead.splitlines()
    assert max(map(width, lines)) > TEXT_WIDTH, "the client wraps"
    assert all(line.endswith((".", "。")) for line in lines)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_follows_the_fixes_is_no_part_of_their_list(lang: str) -> None:
    fixes, rest = told(lang).sections
    assert [line[:3] for line in fixes.splitlines()] == [f"{number}. " for number in range(1, 5)]
    assert LABELS[lang] in rest


def test_the_terminals_text_has_no_marks() -> None:
    answer = service.ask("training qwen2.5 7b lora on a 4090 fails\n" + OOM)
    cards_of(answer)
    assert "**" not in answer.text and "To confirm: " in answer.text


def test_what_is_known_is_told_in_unbroken_lines() -> None:
    """A client wraps lines itself: a text that is broken for a terminal is not shown so on a card."""
    card = cards_of(service.ask("why does gradient checkpointing save memory?"))[0]
    title, *text = card.lead.splitlines()
    assert title == "**Gradient checkpointing**"
    assert len(text) == 1
    assert len(text[0]) > 200


@pytest.mark.parametrize(("question", "lang"), [("full llama3-70b 3090", "en"), ("全参微调 llama3-70b，3090", "zh")])
def test_steps_on_buttons_are_whole_words(question: str, lang: str) -> None:
    card = cards_of(service.ask(question, lang=lang))[0]
    steps = [action.label for action in card.actions if action.kind == "apply"]
    assert len(steps) == 5
    assert not [label for label in steps if "…" in label]
