"""Telling of thresholds that were crossed, each crossing once, at the pace and with the ledger of a poster."""

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bot.digest.alerts import step
from bot.digest.content import cheapest_usd
from bot.digest.delivery import Refused, delivered
from bot.digest.ledger import Claim, Ledger, State
from bot.digest.poster import AT_A_TIME, Poster
from bot.digest.subscription import Alert, Subscription
from bot.prices.offers import Offer

log = logging.getLogger("bot.digest")


@dataclass(frozen=True, slots=True)
class Crossing:
    """An alert of a channel, with the offer that crossed it."""

    wanted: Subscription
    alert: Alert
    offer: Offer


class Discord(Protocol):
    """What is needed of Discord."""

    async def send_alert(self, crossing: Crossing, nonce: str) -> int:
        """Send the sentence; its message id. Raises Refused; any other error leaves it open whether it arrived."""
        ...

    async def find_alert(self, crossing: Crossing, since: float) -> int | None:
        """The message id of the sentence if it is in the channel. Raises Unreadable."""
        ...


class Crossings:
    """Tells of crossings."""

    def __init__(self, poster: Poster[Any], discord: Discord) -> None:
        self._poster, self._discord = poster, discord

    async def round(self, offers: Sequence[Offer]) -> int:
        """Tell of every threshold that is crossed at these offers; how many were told of."""
        found = await self._crossed(offers)
        queue = iter(found)
        return sum(await asyncio.gather(*(self._work(queue) for _ in range(min(AT_A_TIME, len(found))))))

    async def _crossed(self, offers: Sequence[Offer]) -> list[Crossing]:
        """Alerts to tell of; those whose price rose well above their threshold are armed again."""
        stored, found = self._poster.stored, []
        for wanted in await stored(Ledger.enabled):
            for alert in wanted.alerts:
                offer = cheapest_usd(alert.gpu, alert.spot, wanted.classes, offers, self._poster.clock())
                fired, at = await stored(Ledger.alert_state, wanted.channel, alert.key)
                todo = step(alert, offer.usd_per_gpu_hour if offer else None, fired, at, self._poster.now())
                if todo == "arm":
                    await stored(Ledger.arm, wanted.channel, alert.key)
                elif todo == "fire" and offer is not None:
                    found.append(Crossing(wanted, alert, offer))
        return found

    async def _work(self, queue: Iterator[Crossing]) -> int:
        told = 0
        for crossing in queue:
            try:
                await self._poster.pace.turn()
                outcome = await delivered(_Sentence(self._poster, self._discord, crossing), self._poster.now)
                told += outcome == "posted"
            except Exception:
                log.exception("an alert of channel %s", crossing.wanted.channel)
        return told


@dataclass(slots=True)
class _Sentence:
    """The sentence of a crossing, as a message to be delivered once."""

    poster: Poster[Any]
    discord: Discord
    crossing: Crossing

    def __str__(self) -> str:
        return f"an alert for channel {self.crossing.wanted.channel}"

    async def claim(self) -> tuple[Claim, float] | None:
        return await self.poster.stored(Ledger.claim_alert, *self._key, self.poster.now())

    async def send(self, first: float) -> int:
        return await self.discord.send_alert(self.crossing, nonce_of(*self._key, first))

    async def find(self, since: float) -> int | None:
        return await self.discord.find_alert(self.crossing, since)

    async def settle(self, state: State, message: int | None = None) -> None:
        await self.poster.stored(Ledger.settle_alert, *self._key, self.poster.now())

    async def refuse(self, refused: Refused) -> None:
        log.warning("%s: %s", self, refused)  # the daily post counts refusals: several alerts at once are one fault
        await self.settle("refused")

    async def release(self, seconds: float, why: str) -> None:
        await self.poster.stored(Ledger.release_alert, *self._key, self.poster.now(), seconds)

    @property
    def _key(self) -> tuple[int, str]:
        return self.crossing.wanted.channel, self.crossing.alert.key


def nonce_of(channel: int, key: str, first: float) -> str:
    """The same for every try of a crossing; 25 characters at most."""
    return "a" + hashlib.blake2b(f"{channel} {key} {first}".encode(), digest_size=11).hexdigest()
