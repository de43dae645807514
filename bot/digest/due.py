"""When a channel's post is due: pure, over clock changes; ``now`` is given."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from bot.digest.subscription import Subscription

CATCH_UP = timedelta(hours=3)
"""A post that is later than this is skipped, and the next one says so."""
DAYS_BACK = 14


@dataclass(frozen=True, slots=True)
class Due:
    """A post that is owed: its local date, and the moment it was due."""

    subscription: Subscription
    day: date
    moment: datetime


@lru_cache(maxsize=512)
def zone(name: str) -> ZoneInfo:
    """A zone, read once."""
    return ZoneInfo(name)


def local_day(subscription: Subscription, now: datetime) -> date:
    """The date where the channel is."""
    return now.astimezone(zone(subscription.zone)).date()


def moment_of(subscription: Subscription, day: date) -> datetime:
    """When the post of a local date is due.

    A time that the clock change leaves out comes an hour later, one that comes twice counts the first time.
    """
    local = datetime.combine(day, subscription.time, zone(subscription.zone))
    return local.astimezone(UTC)


def next_moment(subscription: Subscription, now: datetime) -> datetime:
    """When the next post is due."""
    days = (local_day(subscription, now) + timedelta(days=number) for number in range(3))
    return next(moment for day in days if (moment := moment_of(subscription, day)) > now)


def due_of(subscription: Subscription, now: datetime) -> Due | None:
    """The post that is owed now, None outside the three hours after its time."""
    for day in _days(subscription, now, 1):
        moment = moment_of(subscription, day)
        if moment <= now < moment + CATCH_UP and moment.timestamp() >= subscription.since:
            return Due(subscription, day, moment)
    return None


def missed_days(subscription: Subscription, now: datetime, back: int = DAYS_BACK) -> list[date]:
    """Local dates of the last days (two weeks of them) whose post is too late by now."""
    return [
        day
        for day in _days(subscription, now, back)
        if (moment := moment_of(subscription, day)) + CATCH_UP <= now and moment.timestamp() >= subscription.since
    ]


def _days(subscription: Subscription, now: datetime, back: int) -> Iterator[date]:
    """Local dates, the newest first."""
    today = local_day(subscription, now)
    yield from (today - timedelta(days=number) for number in range(back + 1))


def in_turn(found: list[Due]) -> list[Due]:
    """The order to post in: no server's second channel before another's first, else who waits longest."""
    seen: dict[int, int] = {}
    turns: list[tuple[int, datetime, int, Due]] = []
    for one in sorted(found, key=lambda due: (due.moment, due.subscription.channel)):
        guild = one.subscription.guild
        seen[guild] = seen.get(guild, -1) + 1
        turns.append((seen[guild], one.moment, one.subscription.channel, one))
    return [turn[3] for turn in sorted(turns, key=lambda turn: turn[:3])]
