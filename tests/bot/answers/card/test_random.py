"""Random answers stay within every limit of Discord and ping nobody; tests/bot/discord tries 2,000 of them."""

import re
from xml.etree import ElementTree

import pytest

from bot.answers.card import Card, cards_of, flags_cards, math_cards
from tests.bot.answers.card.limits import assert_within_limits
from tests.bot.answers.card.randoms import random_answer

ANSWERS, AT_ONCE, LOOKED_INTO_EVERY = 500, 250, 5
PINGS = re.compile(r"@everyone|@here|<@[!&]?\d+>|<#\d+>|https?://")


@pytest.mark.parametrize("first", range(0, ANSWERS, AT_ONCE))
def test_random_answers_stay_within_the_limits(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        answer = random_answer(seed)
        (card,) = cards_of(answer)
        pages = [*math_cards(answer), *flags_cards(answer)] if seed % LOOKED_INTO_EVERY == 0 else []
        for one in [card, *pages]:
            assert_within_limits(one)
            assert_harmless(one)
        if card.picture and seed % LOOKED_INTO_EVERY == 0:
            ElementTree.fromstring(card.picture.svg)


def assert_harmless(card: Card) -> None:
    for text in (
        card.head,
        *card.below,
        *(one.label for one in card.actions),
        card.picture.alt if card.picture else "",
    ):
        outside = "".join(text.split("```")[::2])
        assert not PINGS.search(outside) and "\u202e" not in text and "\x1b" not in text
