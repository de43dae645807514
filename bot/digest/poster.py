"""Posting what is due: each channel and local date once, at Discord's pace, whatever happens to one of them."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from bot.digest.delivery import Outcome, Refused, delivered
from bot.digest.due import CATCH_UP, DAYS_BACK, Due, due_of, in_turn, missed_days
from bot.digest.ledger import Claim, Ledger, State
from bot.digest.subscription import Subscription

P = ParamSpec("P")
Result = TypeVar("Result")
Content = TypeVar("Content")
Sent = TypeVar("Sent", contravariant=True)

log = logging.getLogger("bot.digest")

PER_SECOND = 25.0
"""Half of what Discord lets a bot send; answers go on meanwhile."""
AT_A_TIME = 16
CLOSED = frozenset({403, 404})
"""Statuses that say that a channel is shut or gone; others are faults of a message, not of the channel."""


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

    def count(self, outcome: Outcome) -> None:
        """Note what became of a post."""
        if outcome in ("posted", "found", "refused", "open"):
            setattr(self, outcome, getattr(self, outcome) + 1)


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
        self.stored, self._make, self.discord, self.clock = stored, make, discord, clock
        self._days_back = DAYS_BACK
        self.pace = Pace(per_second, lambda: asyncio.get_running_loop().time())

    async def round(self) -> Tally:
        """Post everything that is due now; note what is too late."""
        now, tally = self.clock(), Tally()
        wanted = await self.stored(Ledger.enabled)
        await self._note_missed(wanted, now, tally)
        await self.stored(Ledger.expire, now.timestamp(), 2 * CATCH_UP.total_seconds())
        owed = [due for one in wanted if (due := due_of(one, now))]
        settled = await self.stored(Ledger.settled, {due.day for due in owed}) if owed else set()
        queue = iter(in_turn([due for due in owed if (due.subscription.channel, due.day.isoformat()) not in settled]))
        await asyncio.gather(*(self._work(queue, tally) for _ in range(min(AT_A_TIME, len(owed)))))
        return tally

    async def post_now(self, due: Due) -> Tally:
        """Post one digest at once, unless that date's was posted; one that was skipped or refused is tried anew."""
        tally = Tally()
        await self._one(due, tally, asked=True)
        return tally

    async def _note_missed(self, wanted: list[Subscription], now: datetime, tally: Tally) -> None:
        """Write down which posts are too late; after a start the last two weeks are gone through."""
        missed = [(one.channel, day) for one in wanted for day in missed_days(one, now, self._days_back)]
        self._days_back = 1
        known = await self.stored(Ledger.settled, {day for _, day in missed}, True) if missed else set()
        late = [(channel, day) for channel, day in missed if (channel, day.isoformat()) not in known]
        if late:
            tally.skipped = await self.stored(Ledger.skip, late, now.timestamp())
            log.warning("%d posts are skipped: more than three hours late", tally.skipped)

    async def _work(self, queue: Iterator[Due], tally: Tally) -> None:
        for due in queue:
            try:
                await self._one(due, tally)
            except Exception:
                log.exception("the digest of %s for channel %s", due.day, due.subscription.channel)
                tally.open += 1

    async def _one(self, due: Due, tally: Tally, asked: bool = False) -> None:
        content = await self._make(due.subscription, due.day)
        await self.pace.turn()
        tally.count(await delivered(_Post(self, due, content, asked), self.now))

    async def refused(self, subscription: Subscription, refused: Refused) -> None:
        """Count that a channel is shut; who set its digest up is told when it is switched off for that."""
        if refused.status not in CLOSED:
            log.error("channel %s: Discord refused a message of ours: %s", subscription.channel, refused)
            return
        if not await self.stored(Ledger.failed, subscription.channel):
            return
        try:
            await self.discord.switched_off(subscription, refused)
        except Exception as error:
            log.warning("channel %s: its owner could not be told: %s", subscription.channel, type(error).__name__)

    def now(self) -> float:
        """Seconds of UTC."""
        return self.clock().timestamp()


@dataclass(slots=True)
class _Post(Generic[Content]):
    """A channel's post of a local date, as a message to be delivered once."""

    poster: Poster[Content]
    due: Due
    content: Content
    asked: bool

    def __str__(self) -> str:
        return f"the digest of {self.due.day} for channel {self.due.subscription.channel}"

    async def claim(self) -> tuple[Claim, float] | None:
        return await self.poster.stored(Ledger.claim, *self._key, self.poster.now(), self.asked)

    async def send(self, first: float) -> int:
        return await self.poster.discord.send(self.due, self.content, nonce_of(*self._key))

    async def find(self, since: float) -> int | None:
        return await self.poster.discord.find(self.due, since)

    async def settle(self, state: State, message: int | None = None) -> None:
        await self.poster.stored(Ledger.settle, *self._key, state, self.poster.now(), message)

    async def refuse(self, refused: Refused) -> None:
        await self.poster.stored(Ledger.settle, *self._key, "refused", self.poster.now(), None, str(refused))
        await self.poster.refused(self.due.subscription, refused)

    async def release(self, seconds: float, why: str) -> None:
        await self.poster.stored(Ledger.release, *self._key, self.poster.now(), seconds, why)

    @property
    def _key(self) -> tuple[int, date]:
        return self.due.subscription.channel, self.due.day


def nonce_of(channel: int, day: date) -> str:
    """The same for every try of a channel's post of a date; 25 characters at most."""
    return "d" + hashlib.blake2b(f"{channel} {day}".encode(), digest_size=11).hexdigest()
