"""The same 2,000 random answers as components: the sums that Discord's server applies to a message."""

from typing import Any

import pytest

from bot.answers.card import Card, cards_of, flags_cards, math_cards
from bot.discord.view import view_of
from tests.bot.answers.card.randoms import random_answer
from tests.standin.limits import check_message

COMPONENTS_V2 = 1 << 15
ANSWERS, AT_ONCE, LOOKED_INTO_EVERY = 2_000, 250, 10


@pytest.mark.parametrize("first", range(0, ANSWERS, AT_ONCE))
async def test_random_cards_are_messages_that_discord_takes(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        answer = random_answer(seed)
        cards = cards_of(answer)
        if seed % LOOKED_INTO_EVERY == 0:
            cards += [*math_cards(answer), *flags_cards(answer)]
        for card in cards:
            assert check_message(body_of(card), [card.picture.name] if card.picture else []) == []


def body_of(card: Card) -> dict[str, Any]:
    view = view_of(card, "a" * 32, 0, 2**63, with_picture=True)
    return {"components": view.to_components(), "flags": COMPONENTS_V2}
