"""Whatever the answer, the message made of it is one that Discord takes."""

import re
from pathlib import Path
from typing import Any

import pytest

from bot.answers.card import Card, cards_of, math_cards
from bot.discord.buttons import CardButton, short
from bot.discord.view import view_of
from tests.bot.answers.card.randoms import random_answer
from tests.standin.limits import check_message, walk
from tests.standin.openapi import Spec

SCHEMA = Path(__file__).parents[2] / "standin" / "schema" / "discord-openapi.json"
ANSWERS = 100
"""Those whose sums alone are checked are more: test_random_cards.py."""
LARGEST_ID = 2**63 - 1
V2 = 1 << 15


def body_of(card: Card) -> dict[str, Any]:
    """The message as it is sent."""
    view = view_of(card, "a" * 12, 0, LARGEST_ID, with_picture=card.picture is not None)
    files = [{"id": 0, "filename": card.picture.name, "description": card.picture.alt}] if card.picture else []
    return {"components": view.to_components(), "flags": V2, "attachments": files, "allowed_mentions": {"parse": []}}


def test_random_answers_in_both_languages_are_what_discords_schema_says() -> None:
    spec = Spec(SCHEMA)
    for seed in range(ANSWERS):
        for card in cards_of(random_answer(seed)):
            body = body_of(card)
            assert check_message(body, [card.picture.name] if card.picture else []) == [], seed
            assert spec.check("POST", "/channels/1/messages", body) == [], seed


def test_pages_of_the_math_are_within_every_limit() -> None:
    spec = Spec(SCHEMA)
    answers = (random_answer(seed) for seed in range(60))
    pages = [page for one in answers for index, found in enumerate(one.estimates) if found.per_gpu
             for page in math_cards(one, index)]  # fmt: skip
    assert pages
    for page in pages:
        assert check_message(body_of(page), []) == []
        assert spec.check("POST", "/webhooks/1/token", body_of(page)) == []


def test_a_button_is_known_again_by_its_id() -> None:
    card = next(card for seed in range(50) for card in cards_of(random_answer(seed)) if len(card.actions) > 2)
    body = body_of(card)
    ids = [part["custom_id"] for part in walk(body["components"]) if part.get("custom_id")]
    for number, (custom_id, action) in enumerate(zip(ids, card.actions, strict=True)):
        match = CardButton.__discord_ui_compiled_template__.fullmatch(custom_id)
        assert match and len(custom_id) <= 100
        assert (int(match["action"]), match["kind"]) == (number, action.kind)
        assert int(match["asker"], 36) == LARGEST_ID


@pytest.mark.parametrize("number", [0, 1, 35, 36, 10**18, LARGEST_ID])
def test_numbers_in_ids_are_short(number: int) -> None:
    assert int(short(number), 36) == number and re.fullmatch("[0-9a-z]{1,13}", short(number))
