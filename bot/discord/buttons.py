"""Buttons that work after a restart: their id names a kept card and which of its actions is meant."""

import re
from typing import TYPE_CHECKING, Any, Self

import discord
from discord import ui

if TYPE_CHECKING:
    from bot.discord.client import VramBot

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def short(number: int) -> str:
    """A number in base 36."""
    digits = ""
    while number:
        number, rest = divmod(number, len(DIGITS))
        digits = DIGITS[rest] + digits
    return digits or "0"


class CardButton(
    ui.DynamicItem[ui.Button[Any]],
    template=r"card:(?P<card>[0-9a-z]{1,32}):(?P<action>\d{1,3}):(?P<asker>[0-9a-z]{1,13}):(?P<kind>[a-z_]{1,20})",
):
    """A button of a card: the card's name in the store, the number and kind of its action, and whose card it is."""

    def __init__(self, card: str, action: int, asker: int, kind: str, button: ui.Button[Any]) -> None:
        button.custom_id = f"card:{card}:{action}:{short(asker)}:{kind}"
        super().__init__(button)
        self.card, self.action, self.asker, self.kind = card, action, asker, kind

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """The button that was pressed, as its id tells it."""
        button = item if isinstance(item, ui.Button) else ui.Button()
        return cls(match["card"], int(match["action"]), int(match["asker"], 36), match["kind"], button)

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Hand the press on to the client."""
        client: VramBot = interaction.client
        await client.pressed(interaction, self)
