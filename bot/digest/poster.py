"""Posting what is due: each channel and local date once, at Discord's pace, whatever happens to one of them.

Before a post is sent it is claimed in the ledger; it is sent with a nonce of its channel and date, by which Discord
itself refuses a second one for some minutes. Where nobody knows whether a post arrived (a crash, a cut connection),
the channel is looked at before anything is sent again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from bot.digest.due import CATCH_UP, DAYS_BACK, Due, due_of, in_turn, missed_days
from bot.digest.ledger import Ledger
from bot.digest.subscription import Subscription

P = ParamSpec("P")
Result = TypeVar("Result")
Content = TypeVar("Content")
Sent = TypeVar("Sent", contravariant=True)

log = logging.getLogger("bot.digest")

PER_SECOND = 25.0
"""Half of what Discord lets a bot send; answers go on meanwhile."""
AT_A_TIME = 16
SECONDS_FOR_ONE = 90.0
RETRY_SECONDS = 60.0
NONCE_SECONDS = 120.0
"""Discord remembers a nonce for a few minutes; within two of them a second post cannot appear."""


class Refused(Exception):
    """Discord will not take the message there; ``status`` is the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Unreadable(Exception):
    """The channel cannot be looked at."""


class Discord(Protocol[Sent]):
    """What is needed of Discord."""

    async def send(self, due: Due, content: Sent, nonce: str) -> int:
        """Send the post; its message id. Raises Refused; any other error leaves it open whether it arrived."""
        ...

    async def find(self, due: Due, since: float) -> int | None:
        """The message id of this post if it is in the channel. Raises Unreadable."""
        ...

    async def switched_off(self, subscription: Subscription, refused: Refused) -> None:
        """Tell who set the digest up, privately, that it was switched off."""
        ...


class Stored(Protocol):
    """Runs a method of the ledger in its thread."""

    async def __call__(
        self, method: Callable[Concatenate[Ledger, P], Result], /, *args: P.args, **values: P.kwargs
    ) -> Result:
        """The method's result."""
        ...


@dataclass(slots=True)
class Tally:
    """What a round did."""

    posted: int = 0
    found: int = 0
    refused: int = 0
    open: int = 0
    skipped: int = 0


class Pace:
    """Lets so many through a second, in the order in which they came."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._gap, self._clock, self._next = 1 / per_second, clock, 0.0

    async def turn(self) -> None:
        """Wait for one's turn."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._gap
        if at > now:
            await asyncio.sleep(at - now)


class Poster(Generic[Content]):
    """Posts what is due. ``make`` gives the content of a channel's post for a local date."""

    def __init__(
        self,
        stored: Stored,
        make: Callable[[Subscription, date], Awaitable[Content]],
        discord: Discord[Content],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        per_second: float = PER_SECOND,
    ) -> None:
        self._stored, self._make, self._discord, self._clock = stored, make, discord, clock
        self._days_back = DAYS_BACK
        self._pace = Pace(per_second, lambda: asyncio.get_running_loop().time())

    async def round(self) -> Tally:
        """Post everything that is due now; note what is too late."""
        now, tally = self._clock(), Tally()
        wanted = await self._stored(Ledger.enabled)
        await self._note_missed(wanted, now, tally)
        await self._stored(Ledger.expire, now.timestamp(), 2 * CATCH_UP.total_seconds())
        owed = [due for one in wanted if (due := due_of(one, now))]
        settled = await self._stored(Ledger.settled, {due.day for due in owed}) if owed else set()
        queue = iter(in_turn([due for due in owed if (due.subscription.channel, due.day.isoformat()) not in settled]))
        await asyncio.gather(*(self._work(queue, tally) for _ in range(min(AT_A_TIME, len(owed)))))
        return tally

    async def post_now(self, due: Due) -> Tally:
        """Post one digest at once, unless that date's was posted."""
        tally = Tally()
        await self._one(due, tally)
        return tally

    async def _note_missed(self, wanted: list[Subscription], now: datetime, tally: Tally) -> None:
        """Write down which posts are too late; after a start the last two weeks are gone through."""
        missed = [(one.channel, day) for one in wanted for day in missed_days(one, now, self._days_back)]
        self._days_back = 1
        known = await self._stored(Ledger.settled, {day for _, day in missed}, True) if missed else set()
        for channel, day in missed:
            if (channel, day.isoformat()) not in known and await self._stored(
                Ledger.skip, channel, day, now.timestamp()
            ):
                tally.skipped += 1
                log.warning("the digest of %s for channel %s is skipped: too late", day, channel)

    async def _work(self, queue: Iterator[Due], tally: Tally) -> None:
        for due in queue:
            try:
                await self._one(due, tally)
            except Exception:
                log.exception("the digest of %s for channel %s", due.day, due.subscription.channel)
                tally.open += 1

    async def _one(self, due: Due, tally: Tally) -> None:
        channel, day = due.subscription.channel, due.day
        content = await self._make(due.subscription, day)
        await self._pace.turn()
        claim = await self._stored(Ledger.claim, channel, day, self._now())
        if claim is None or (claim == "again" and await self._is_there(due, tally)):
            return
        await self._send(due, content, tally)

    async def _is_there(self, due: Due, tally: Tally) -> bool:
        """Whether an earlier try arrived after all, or may have and cannot be looked for."""
        post = await self._stored(Ledger.post, due.subscription.channel, due.day)
        assert post is not None
        try:
            async with asyncio.timeout(SECONDS_FOR_ONE):
                message = await self._discord.find(due, post.first_at)
        except Unreadable:
            if self._now() - post.first_at <= NONCE_SECONDS:
                return False
            await self._stored(Ledger.settle, due.subscription.channel, due.day, "unknown", self._now())
            return True
        except Exception as error:
            await self._leave_open(due, error, tally)
            return True
        if message is None:
            return False
        await self._stored(Ledger.settle, due.subscription.channel, due.day, "posted", self._now(), message)
        tally.found += 1
        return True

    async def _send(self, due: Due, content: Content, tally: Tally) -> None:
        channel, day = due.subscription.channel, due.day
        try:
            async with asyncio.timeout(SECONDS_FOR_ONE):
                message = await self._discord.send(due, content, nonce_of(channel, day))
        except Refused as refused:
            await self._stored(Ledger.settle, channel, day, "refused", self._now(), None, str(refused))
            tally.refused += 1
            if await self._stored(Ledger.failed, channel):
                await self._tell_off(due.subscription, refused)
        except Exception as error:
            await self._leave_open(due, error, tally)
        else:
            await self._stored(Ledger.settle, channel, day, "posted", self._now(), message)
            tally.posted += 1

    async def _tell_off(self, subscription: Subscription, refused: Refused) -> None:
        try:
            await self._discord.switched_off(subscription, refused)
        except Exception as error:
            log.warning("channel %s: its owner could not be told: %s", subscription.channel, type(error).__name__)

    async def _leave_open(self, due: Due, error: Exception, tally: Tally) -> None:
        log.warning(
            "the digest for channel %s: %s, it is looked into again", due.subscription.channel, error or type(error)
        )
        tally.open += 1
        why = f"{type(error).__name__}: {error}"
        await self._stored(Ledger.release, due.subscription.channel, due.day, self._now(), RETRY_SECONDS, why)

    def _now(self) -> float:
        return self._clock().timestamp()


def nonce_of(channel: int, day: date) -> str:
    """The same for every try of a channel's post of a date; 25 characters at most."""
    return "d" + hashlib.blake2b(f"{channel} {day}".encode(), digest_size=11).hexdigest()
