"""A card as Discord shows it: a container with texts, a picture and rows of buttons."""

import io

import discord
from discord import ui

from bot.answers.card.shape import Action, Card, Picture
from bot.discord.buttons import CardButton

ROW = 5
SPECIAL = {"apply": discord.ButtonStyle.success, "reading": discord.ButtonStyle.primary}


def view_of(card: Card, name: str, first: int, asker: int, with_picture: bool) -> ui.LayoutView:
    """The card made for the user ``asker``; its buttons, counted from ``first``, lead to what is kept as ``name``."""
    container: ui.Container[ui.LayoutView] = ui.Container(accent_colour=card.colour)
    container.add_item(ui.TextDisplay(card.head))
    if card.picture and with_picture:
        shown = discord.MediaGalleryItem(f"attachment://{card.picture.name}", description=card.picture.alt)
        container.add_item(ui.MediaGallery(shown))
    for part in card.below:
        container.add_item(ui.TextDisplay(part))
    buttons = [_button(action, name, number, asker) for number, action in enumerate(card.actions, first)]
    for start in range(0, len(buttons), ROW):
        container.add_item(ui.ActionRow(*buttons[start : start + ROW]))
    return ui.LayoutView(timeout=None).add_item(container)


def file_of(picture: Picture, png: bytes) -> discord.File:
    """The picture as an upload, its alternative text with it."""
    return discord.File(io.BytesIO(png), picture.name, description=picture.alt)


def _button(action: Action, name: str, number: int, asker: int) -> CardButton:
    style = SPECIAL.get(action.kind, discord.ButtonStyle.secondary)
    return CardButton(name, number, asker, action.kind, ui.Button(label=action.label, style=style))
