"""A Discord that loses, refuses and forgets, and a loop whose time passes at once."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.digest.crossings import Crossing, Crossings
from bot.digest.delivery import Refused, Unreadable
from bot.digest.due import Due
from bot.digest.ledger import Ledger
from bot.digest.poster import Poster
from bot.digest.subscription import Subscription
from bot.prices.offers import Offer

NONCES_KEPT = timedelta(minutes=3)


class Jumping(selectors.SelectSelector):
    """Does not wait: the loop's clock is set to when the next thing is due."""

    loop: "QuickLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.loop.passed += timeout
        return ready


class QuickLoop(asyncio.SelectorEventLoop):
    """Sleeping takes no time; ``time`` tells how much would have passed."""

    def __init__(self) -> None:
        selector = Jumping()
        selector.loop = self
        self.passed = 0.0
        super().__init__(selector)
        self._clock_resolution = 1e-6  # else rounding leaves a wait too short to be noticed

    def time(self) -> float:
        return self.passed


def quickly(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """The result of a coroutine and the seconds it would have taken."""
    loop = QuickLoop()
    try:
        return loop.run_until_complete(work), loop.passed
    finally:
        loop.close()


def wish(channel: int = 1, **changes: Any) -> Subscription:
    usual = {"guild": channel, "by": 9, "at": "09:00", "zone": "UTC", "lang": "en", "currency": "USD", "since": 0.0}
    return Subscription(channel=channel, **{**usual, **changes})


class Crash(BaseException):
    """The process ends here: nothing behind it runs."""


@dataclass
class World:
    """Channels with their messages, and the clock; each hook may raise before or after a message appears."""

    now: datetime = datetime(2026, 3, 1, 8, 59, tzinfo=UTC)
    messages: dict[int, list[tuple[datetime, str]]] = field(default_factory=dict)
    nonces: dict[str, datetime] = field(default_factory=dict)
    before: Callable[[Due], None] = lambda due: None
    after: Callable[[Due], None] = lambda due: None
    readable: bool = True
    told: list[int] = field(default_factory=list)
    said: list[tuple[datetime, int, str]] = field(default_factory=list)

    def clock(self) -> datetime:
        return self.now

    async def send(self, due: Due, content: str, nonce: str) -> int:
        self.before(due)
        if nonce not in self.nonces or self.now - self.nonces[nonce] > NONCES_KEPT:
            self.nonces[nonce] = self.now
            self.messages.setdefault(due.subscription.channel, []).append((self.now, content))
        self.after(due)
        return len(self.messages[due.subscription.channel])

    async def find(self, due: Due, since: float) -> int | None:
        if not self.readable:
            raise Unreadable
        found = [text for at, text in self.messages.get(due.subscription.channel, ()) if at.timestamp() >= since - 60]
        return next((number for number, text in enumerate(found, 1) if text == due.day.isoformat()), None)

    async def send_alert(self, crossing: Crossing, nonce: str) -> int:
        due = Due(crossing.wanted, self.now.date(), self.now)
        self.before(due)
        if nonce not in self.nonces or self.now - self.nonces[nonce] > NONCES_KEPT:
            self.nonces[nonce] = self.now
            self.said.append((self.now, crossing.wanted.channel, crossing.alert.key))
        self.after(due)
        return len(self.said)

    async def find_alert(self, crossing: Crossing, since: float) -> int | None:
        if not self.readable:
            raise Unreadable
        wanted = (crossing.wanted.channel, crossing.alert.key)
        found = [at for at, *told in self.said if tuple(told) == wanted and at.timestamp() >= since - 60]
        return 1 if found else None

    async def switched_off(self, subscription: Subscription, refused: Refused) -> None:
        self.told.append(subscription.by)

    def days(self, channel: int = 1) -> list[str]:
        return [text for _, text in self.messages.get(channel, ())]


class Wire:
    """The way to a world: a process may end before and after each thing that it does there."""

    def __init__(self, world: World, step: Callable[[], None]) -> None:
        self._world, self._step = world, step

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._world, name)

        async def done(*args: Any) -> Any:
            self._step()
            result = await work(*args)
            self._step()
            return result

        return done


class Process:
    """One running bot: its own connection to the ledger's file. ``steps``: so many are left until it ends."""

    def __init__(self, path: Path, world: World, per_second: float = 25.0, steps: int | None = None) -> None:
        self.ledger = Ledger(path)
        self.ledger._database.execute("pragma synchronous = off")  # the disk of the test machine is not the matter
        self.world, self.steps = world, steps

        async def stored(method: Any, /, *args: Any, **values: Any) -> Any:
            self.step()
            result = method(self.ledger, *args, **values)
            self.step()
            return result

        async def make(wanted: Subscription, day: date) -> str:
            self.step()
            return day.isoformat()

        wire: Any = world if steps is None else Wire(world, self.step)
        self.poster = Poster(stored, make, wire, world.clock, per_second)
        self.crossings = Crossings(self.poster, wire)

    def step(self) -> None:
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise Crash

    def tick(self) -> Any:
        return quickly(self.poster.round())[0]

    def tell(self, *offers: Offer) -> int:
        """A round of alerts at these offers."""
        found: int = quickly(self.crossings.round(offers))[0]
        return found

    def dies(self, work: Callable[[], Any]) -> bool:
        """Whether it ended before the work was done."""
        try:
            work()
        except Crash:
            return True
        finally:
            self.ledger.close()
        return False

    def dies_in(self, moment: str) -> None:
        """Run a round that ends at a moment: before or after the message appears."""

        def crash(due: Due) -> None:
            raise Crash

        setattr(self.world, moment, crash)
        try:
            self.tick()
        except Crash:
            pass
        finally:
            setattr(self.world, moment, lambda due: None)
