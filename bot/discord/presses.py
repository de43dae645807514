"""What each kind of button does."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import discord

from bot import service
from bot.answer import Answer
from bot.answers.card import Card, examples, flags_cards, math_cards
from bot.discord.acknowledge import acknowledged, send_privately
from bot.discord.buttons import CardButton
from bot.discord.places import asker_of
from bot.discord.replies import reply, reply_pages
from bot.discord.translate import language_of_locale
from bot.store import Store, StoredCard
from bot.texts import say

if TYPE_CHECKING:
    from bot.discord.client import VramBot

PAGES: dict[str, Callable[[Answer], list[Card]]] = {
    "math": lambda answer: math_cards(service.explained(answer)),
    "flags": flags_cards,
}
"""Kinds that show more of a card, to the one who presses alone."""


async def press(interaction: "discord.Interaction[VramBot]", button: CardButton) -> None:
    """Do what a button says: a new card for the one whose card it is, for others one that only they see."""
    lang = language_of_locale(interaction.locale)
    private = button.kind in PAGES or interaction.user.id != button.asker
    if not await acknowledged(interaction, private):
        return
    desk = interaction.client.desk
    card = await desk.stored(Store.card, button.card)
    if card is None or button.action >= len(card.actions):
        await send_privately(interaction, say(lang, "discord.card_gone"))
        return
    action, asker = card.actions[button.action], asker_of(interaction)
    send = partial(interaction.followup.send, ephemeral=private)
    if pages := PAGES.get(action["kind"]):
        await reply_pages(desk, asker, lambda: pages(_answer(card, action, lang)), send)
    else:
        await reply(desk, asker, lambda: _answer(card, action, lang), send)


def _answer(card: StoredCard, action: dict[str, Any], lang: str) -> Answer:
    """The answer that an action leads to."""
    kind, argument = action["kind"], str(action["argument"])
    if kind == "example":
        return service.ask(examples(card.lang)[int(argument)], lang=lang)
    if kind in ("apply", "what_if"):
        return service.again(card.question, card.runs[0] if card.runs else {}, lang, action["change"])
    return service.again(card.question, card.runs[int(argument)], lang)
