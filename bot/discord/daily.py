"""What runs by itself: refreshing prices, the daily digest, and thresholds; none of it ever ends the others."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import discord

from bot.answer import Answer
from bot.answers.card import Card, Picture
from bot.answers.card.fonts import PIXELS
from bot.answers.card.prices import price_picture
from bot.answers.digest import digest_text, title_of
from bot.digest.content import Post
from bot.digest.crossings import Crossing, Crossings
from bot.digest.delivery import Refused, Unreadable
from bot.digest.due import Due
from bot.digest.ledger import FAILURES_UNTIL_OFF, Ledger
from bot.digest.make import Maker
from bot.digest.poster import Poster
from bot.digest.subscription import Alert, Subscription
from bot.discord.view import file_of, view_of
from bot.prices.current import FILE, market_in
from bot.prices.history import History
from bot.prices.money import amount, bundled_rates
from bot.prices.offers import Offer
from bot.prices.refresh import next_in_seconds, refresh, sources_of
from bot.settings import Settings
from bot.texts import say

if TYPE_CHECKING:
    from bot.discord.client import VramBot

log = logging.getLogger("bot.digest")

SECONDS_BETWEEN_ROUNDS = 30.0
FIRST_REFRESH_SECONDS = (5.0, 60.0)
MESSAGES_LOOKED_AT = 1_000
"""Beyond, nobody knows whether a message is there: better none than two."""
MAKER_SECONDS = 120.0
LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Content:
    """A post ready to send: its text, and its picture with the pixels where there is one."""

    card: Card
    png: bytes | None

    def message(self) -> dict[str, Any]:
        """What is sent: the card, and the picture as a file."""
        picture = self.card.picture
        return {
            "view": view_of(self.card, "", 0, 0, with_picture=self.png is not None),
            "files": [file_of(picture, self.png)] if picture and self.png is not None else [],
        }


class Daily:
    """The digest of a running bot; ``start`` begins what runs by itself."""

    def __init__(self, bot: "VramBot", settings: Settings) -> None:
        self._bot, self._settings, self._folder = bot, settings, Path(settings.vram_bot_data)
        self._shelf = ThreadPoolExecutor(1, "digest")
        self._ledger: Ledger | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._made: tuple[float, Maker] | None = None
        self._pictures: dict[str, bytes | None] = {}
        self.poster: Poster[Content] = Poster(self.stored, self.content, self)
        self.crossings = Crossings(self.poster, self)

    async def open(self) -> None:
        """Open the ledger, once."""
        if self._ledger is None:
            self._ledger = await self._on_shelf(partial(Ledger, self._folder / "digest.db"))

    def start(self) -> None:
        """Begin the rounds and, where sources are set, the refreshing."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._again_and_again(work, lambda: SECONDS_BETWEEN_ROUNDS, 1.0))
                for work in (self._round, self.alerts)
            ]
            if sources_of(self._settings.vram_bot_price_sources.split(), self._folder):
                first = random.uniform(*FIRST_REFRESH_SECONDS)  # noqa: S311 - so that many bots do not ask at once
                self._tasks.append(asyncio.create_task(self._again_and_again(self._refresh, next_in_seconds, first)))

    async def close(self) -> None:
        """End what runs and close the ledger."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            await self._on_shelf(ledger.close)
        self._shelf.shutdown(wait=False, cancel_futures=True)

    async def stored(self, method: Callable[..., Any], /, *args: Any, **values: Any) -> Any:
        """The result of a method of the ledger, run in its thread."""
        await self.open()
        return await self._on_shelf(partial(method, self._ledger, *args, **values))

    async def _on_shelf(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._shelf, work)

    async def _again_and_again(
        self, work: Callable[[], Awaitable[object]], wait: Callable[[], float], first: float
    ) -> None:
        await asyncio.sleep(first)
        while True:
            try:
                await work()
            except Exception:
                log.exception("a round of the digest or the prices failed; the next one comes")
            await asyncio.sleep(wait())

    async def _round(self) -> None:
        await self._bot.wait_until_ready()
        await self.poster.round()

    async def _refresh(self) -> None:
        await asyncio.to_thread(self._refreshed)
        self._made = None

    def _refreshed(self) -> None:
        names = self._settings.vram_bot_price_sources.split()
        with contextlib.closing(History(self._folder / FILE)) as history:
            refresh(sources_of(names, self._folder, self._settings.vram_bot_price_table), history)

    # making -------------------------------------------------------------------------------------------------------

    async def content(self, wanted: Subscription, day: date) -> Content:
        """The post of a channel for a local date."""
        last = await self.stored(Ledger.last_posted, wanted.channel)
        begun = datetime.fromtimestamp(wanted.since, UTC).date() - timedelta(days=1)
        after = last[0] if last else begun.isoformat()
        skipped = tuple(await self.stored(Ledger.skipped_since, wanted.channel, after))
        card = await self._bot.desk.work(self._card, wanted, day, last, skipped)
        return Content(card, await self._png(card.picture))

    async def _png(self, picture: Picture | None) -> bytes | None:
        if picture is None:
            return None
        if picture.svg not in self._pictures:
            self._pictures = dict(list(self._pictures.items())[-30:])
            self._pictures[picture.svg] = await self._bot.desk.draw(picture.svg, PIXELS)
        return self._pictures[picture.svg]

    def _card(self, wanted: Subscription, day: date, last: tuple[str, float] | None, skipped: tuple[str, ...]) -> Card:
        post = self._maker().post(wanted, day, last, skipped)
        return card_of(post, wanted.lang)

    def _maker(self) -> Maker:
        now = datetime.now(UTC)
        if self._made is None or now.timestamp() - self._made[0] > MAKER_SECONDS:
            self._made = (now.timestamp(), Maker(self._folder, now))
        return self._made[1]

    # speaking with Discord ----------------------------------------------------------------------------------------

    async def send(self, due: Due, content: Content, nonce: str) -> int:
        """Send the post. Raises Refused where Discord will not have it."""
        return await self._sent(due.subscription, **content.message(), nonce=nonce)

    async def send_alert(self, crossing: Crossing, nonce: str) -> int:
        """Send the sentence of a crossing. Raises Refused where Discord will not have it."""
        text = alert_text(crossing.wanted, crossing.alert, crossing.offer)
        return await self._sent(crossing.wanted, content=text, nonce=nonce)

    async def _sent(self, wanted: Subscription, **message: Any) -> int:
        channel = self._bot.get_partial_messageable(wanted.channel, guild_id=wanted.guild)
        try:
            sent = await channel.send(**message)
        except discord.HTTPException as error:
            if 400 <= error.status < 500 and error.status not in (408, 429):
                raise Refused(error.status, f"{error.status} {error.code}") from None
            raise
        return sent.id

    async def find(self, due: Due, since: float) -> int | None:
        """This post among the channel's messages, in whatever language it was sent. Raises Unreadable."""
        titles = [title_of(lang, due.day.isoformat()) for lang in LANGUAGES]
        return await self._found(due.subscription, since, titles)

    async def find_alert(self, crossing: Crossing, since: float) -> int | None:
        """The sentence of a crossing among the channel's messages. Raises Unreadable."""
        marks = [alert_mark(replace(crossing.wanted, lang=lang), crossing.alert) for lang in LANGUAGES]
        return await self._found(crossing.wanted, since, marks)

    async def _found(self, wanted: Subscription, since: float, marks: list[str]) -> int | None:
        channel = self._bot.get_partial_messageable(wanted.channel, guild_id=wanted.guild)
        after, seen = datetime.fromtimestamp(since - 60, UTC), 0
        try:
            async for message in channel.history(limit=MESSAGES_LOOKED_AT, after=after):
                seen += 1
                ours = self._bot.user is not None and message.author.id == self._bot.user.id
                if ours and any(mark in _text_of(message) for mark in marks):
                    return message.id
        except discord.NotFound:
            return None
        except discord.Forbidden:
            raise Unreadable from None
        if seen == MESSAGES_LOOKED_AT:
            raise Unreadable
        return None

    async def switched_off(self, subscription: Subscription, refused: Refused) -> None:
        """A direct message to the one who set the digest up."""
        log.warning("the digest for channel %s is switched off: %s", subscription.channel, refused)
        if not subscription.by:
            return
        sentence = say(subscription.lang, "digest.switched_off", channel=subscription.channel,
                       why=refusal(subscription.lang, str(refused)), count=FAILURES_UNTIL_OFF)  # fmt: skip
        person = await self._bot.create_dm(discord.Object(subscription.by))
        await person.send(sentence)

    # thresholds ---------------------------------------------------------------------------------------------------

    async def alerts(self) -> int:
        """Tell of thresholds that were crossed; how many."""
        await self._bot.wait_until_ready()
        if not any(one.alerts for one in await self.stored(Ledger.enabled)):
            return 0
        offers = (await asyncio.to_thread(market_in, self._folder, datetime.now(UTC))).offers
        return await self.crossings.round(offers)


def refusal(lang: str, error: str) -> str:
    """Why Discord refused a message; ``error`` begins with the HTTP status."""
    return say(lang, f"digest.refused_{error[:3] if error[:3] in ('403', '404') else 'other'}")


def alert_text(wanted: Subscription, alert: Alert, offer: Offer) -> str:
    """The sentence of a crossing, with price, provider and day."""
    price = amount(offer.usd_per_gpu_hour, wanted.currency, bundled_rates())
    return alert_mark(wanted, alert) + say(
        wanted.lang, "digest.alert_at", price=price, provider=offer.provider, day=offer.as_of
    )


def alert_mark(wanted: Subscription, alert: Alert) -> str:
    """The part of the sentence by which it is known again: card, kind and threshold."""
    threshold = amount(alert.below_usd, wanted.currency, bundled_rates())
    return say(wanted.lang, "digest.alert_spot" if alert.spot else "digest.alert", gpu=alert.gpu, threshold=threshold)


def card_of(post: Post, lang: str) -> Card:
    """The post as a card: headline, text, picture, footer."""
    title, *lines = digest_text(post, lang).splitlines()
    picture = price_picture(Answer(lang="zh" if lang == "zh" else "en", question="price", prices=post.prices))
    return Card("told", title.removeprefix("### "), sections=("\n".join(lines),), picture=picture)


def _text_of(message: discord.Message) -> str:
    return "\n".join([message.content, *(str(part.to_dict()) for part in message.components)])
