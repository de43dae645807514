"""From a question to the message that answers it: made in a worker thread, kept for its buttons, then sent."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import discord

from bot.answer import Answer
from bot.answers.card import Card, cards_of
from bot.answers.card.fonts import PIXELS
from bot.answers.quote import quoted
from bot.discord.attachments import Files
from bot.discord.desk import Desk
from bot.discord.view import file_of, view_of
from bot.store import Store, StoredCard, Talk
from bot.texts import name_of, say

MOST_NAMED = 5


class Send(Protocol):
    """Sends one message; the first of an answer or a further one."""

    def __call__(self, *, view: discord.ui.LayoutView, files: list[discord.File]) -> Awaitable[object]:
        """Send the view with its files."""
        ...


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked where, and whether pictures may be attached there."""

    user: int
    channel: int
    with_pictures: bool = True
    remembers: bool = True


@dataclass(frozen=True, slots=True)
class Made:
    """An answer with its cards, and the SVG of each card that has a picture."""

    answer: Answer | None
    cards: list[Card]
    drawings: list[str | None]


def made(work: Callable[[], Answer], with_pictures: bool) -> Made:
    """Answer, and write out the drawings; not for the event loop."""
    answer = work()
    cards = cards_of(answer)
    return Made(answer, cards, [card.picture.svg if card.picture and with_pictures else None for card in cards])


def made_pages(work: Callable[[], list[Card]]) -> Made:
    """Pages without pictures and buttons."""
    cards = work()
    return Made(None, cards, [None] * len(cards))


async def reply(desk: Desk, asker: Asker, work: Callable[[], Answer], send: Send) -> bool:
    """Answer a question; whether there was anything to say."""
    done = await desk.work(made, work, asker.with_pictures)
    name = await _kept(desk, asker, done)
    await _sent(desk, done, name, asker, send)
    return bool(done.cards)


async def reply_pages(desk: Desk, asker: Asker, work: Callable[[], list[Card]], send: Send) -> None:
    """Show pages that belong to a card."""
    await _sent(desk, await desk.work(made_pages, work), "", asker, send)


async def tell_unread(files: Files, lang: str, send: Callable[..., Awaitable[object]]) -> None:
    """Name the files that were not read, if any."""
    if files.unread:
        names = name_of(lang, "sign", "comma").join(quoted(name) for name in files.unread[:MOST_NAMED])
        await send(say(lang, "discord.unread", names=names))


async def _kept(desk: Desk, asker: Asker, done: Made) -> str:
    """The name under which the card's buttons find their run; empty where it has none."""
    answer = done.answer
    if answer is None or answer.reply == "ignore":
        return ""
    if asker.remembers and answer.spoken:
        await desk.stored(Store.keep_talk, asker.channel, asker.user, Talk(answer.question, answer.spoken))
    actions = [asdict(action) for card in done.cards for action in card.actions]
    if not actions:
        return ""
    return await desk.stored(Store.keep_card, asker.user, stored_card(answer, actions))


def stored_card(answer: Answer, actions: list[dict[str, Any]]) -> StoredCard:
    """What the buttons need of an answer: the runs, and what each button does."""
    return StoredCard(answer.lang, answer.question, answer.runs, actions)


async def _sent(desk: Desk, done: Made, name: str, asker: Asker, send: Send) -> None:
    first = 0
    for card, svg in zip(done.cards, done.drawings, strict=True):
        png = await desk.draw(svg, PIXELS) if svg else None
        view = view_of(card, name, first, asker.user, with_picture=png is not None)
        files = [file_of(card.picture, png)] if card.picture and png is not None else []
        await send(view=view, files=files)
        first += len(card.actions)
