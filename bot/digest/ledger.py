"""Subscriptions and posts in SQLite: a post of a channel and local date is claimed before it is sent, by one process.

Times are seconds of UTC. Ids are kept, no message text.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import sqlite_utils

from bot.digest.subscription import Alert, Subscription

WAIT_MS = 10_000
LEASE_SECONDS = 600.0
"""A claim that is not settled by then is looked into by whoever comes first."""
FAILURES_UNTIL_OFF = 3
KEEP_POSTS_DAYS = 400.0
DAY = 86_400.0

State = Literal["claimed", "posted", "skipped", "refused", "unknown"]
Claim = Literal["new", "again"]


@dataclass(frozen=True, slots=True)
class Post:
    """What became of a post: its state, when, its message, the moment of its first claim, tries, the last error."""

    state: State
    at: float
    message: int | None
    first_at: float
    tries: int
    error: str


class Ledger:
    """The digest's file of a folder."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite_utils.Database(str(path), execute_plugins=False)
        self._database.execute(f"pragma busy_timeout = {WAIT_MS}")
        self._database.enable_wal()
        tables = ("digests", "posts", "alerts")
        digests, posts, alerts = (self._database.table(name) for name in tables)
        digests.create(
            {"channel": int, "guild": int, "owner": int, "wanted": str, "since": float, "enabled": int,
             "failures": int},
            pk="channel", if_not_exists=True,
        )  # fmt: skip
        posts.create(
            {"channel": int, "day": str, "state": str, "at": float, "message": int, "first_at": float, "tries": int,
             "error": str},
            pk=("channel", "day"), if_not_exists=True,
        )  # fmt: skip
        alerts.create(
            {"channel": int, "key": str, "fired": int, "at": float, "claimed": float, "first_at": float},
            pk=("channel", "key"), if_not_exists=True,
        )  # fmt: skip
        if "first_at" not in {column.name for column in alerts.columns}:  # a file of before 2026-12
            alerts.add_column("first_at", float, not_null_default=0)
        digests.create_index(["guild"], if_not_exists=True)

    # subscriptions ------------------------------------------------------------------------------------------------

    def keep(self, wanted: Subscription) -> None:
        """Keep a channel's wishes; its failures begin anew."""
        told = {name: value for name, value in asdict(wanted).items() if name not in COLUMNS}
        row = (wanted.channel, wanted.guild, wanted.by, json.dumps(told), wanted.since, int(wanted.enabled), 0)
        with self._database.conn:
            self._database.execute("insert or replace into digests values (?, ?, ?, ?, ?, ?, ?)", row)

    def drop(self, channel: int) -> bool:
        """Forget a channel's wishes; whether there were any. Its posts stay known: a date is never posted twice."""
        with self._database.conn:
            self._database.execute("delete from alerts where channel = ?", (channel,))
            return self._database.execute("delete from digests where channel = ?", (channel,)).rowcount > 0

    def drop_guild(self, guild: int) -> int:
        """Forget everything of a server; how many channels that were."""
        with self._database.conn:
            for table in ("posts", "alerts"):
                self._database.execute(
                    f"delete from {table} where channel in (select channel from digests where guild = ?)",  # noqa: S608
                    (guild,),
                )
            return self._database.execute("delete from digests where guild = ?", (guild,)).rowcount

    def forget(self, user: int) -> int:
        """Forget who set digests up; the channels keep them. How many rows that were."""
        with self._database.conn:
            return self._database.execute("update digests set owner = 0 where owner = ?", (user,)).rowcount

    def wanted(self, channel: int) -> Subscription | None:
        """A channel's wishes."""
        rows = self._database.execute(f"select {_ROW} from digests where channel = ?", (channel,)).fetchall()  # noqa: S608
        return _subscription(rows[0]) if rows else None

    def enabled(self) -> list[Subscription]:
        """Every channel that is to get the digest."""
        rows = self._database.execute(f"select {_ROW} from digests where enabled = 1")  # noqa: S608
        return [_subscription(row) for row in rows.fetchall()]

    def failed(self, channel: int) -> bool:
        """Count a refusal; whether the channel was switched off for it just now."""
        with self._database.conn:
            self._database.execute("update digests set failures = failures + 1 where channel = ?", (channel,))
            return (
                self._database.execute(
                    "update digests set enabled = 0 where channel = ? and failures >= ? and enabled = 1",
                    (channel, FAILURES_UNTIL_OFF),
                ).rowcount
                > 0
            )

    # posts --------------------------------------------------------------------------------------------------------

    def claim(self, channel: int, day: date, now: float, asked: bool = False) -> tuple[Claim, float] | None:
        """Take on a post, and since when it is tried: "again" where an earlier try was never settled.

        None: it is another's, or done. One that was skipped or refused is done, unless somebody asks for it.
        """
        with self._database.conn:
            if self._database.execute(
                "insert or ignore into posts values (?, ?, 'claimed', ?, null, ?, 1, '')",
                (channel, day.isoformat(), now, now),
            ).rowcount:
                return "new", now
            if asked and self._taken_anew(channel, day, now):
                return "new", now
            taken = self._database.execute(
                "update posts set at = ?, tries = tries + 1"
                " where channel = ? and day = ? and state = 'claimed' and at <= ?",
                (now, channel, day.isoformat(), now - LEASE_SECONDS),
            ).rowcount
            post = self.post(channel, day) if taken else None
            return ("again", post.first_at) if post else None

    def _taken_anew(self, channel: int, day: date, now: float) -> bool:
        return self._database.execute(
            "update posts set state = 'claimed', at = ?, first_at = ?, tries = tries + 1"
            " where channel = ? and day = ? and state in ('skipped', 'refused')",
            (now, now, channel, day.isoformat()),
        ).rowcount > 0  # fmt: skip

    def settle(
        self, channel: int, day: date, state: State, now: float, message: int | None = None, error: str = ""
    ) -> None:
        """Say what became of a post."""
        with self._database.conn:
            self._database.execute(
                "update posts set state = ?, at = ?, message = ?, error = ? where channel = ? and day = ?",
                (state, now, message, error[:300], channel, day.isoformat()),
            )
            if state == "posted":
                self._database.execute("update digests set failures = 0 where channel = ?", (channel,))

    def release(self, channel: int, day: date, now: float, seconds: float, error: str) -> None:
        """Leave a claim to be looked into in so many seconds: nobody knows whether the post arrived."""
        with self._database.conn:
            self._database.execute(
                "update posts set at = ?, error = ? where channel = ? and day = ? and state = 'claimed'",
                (now - LEASE_SECONDS + seconds, error[:300], channel, day.isoformat()),
            )

    def skip(self, late: Iterable[tuple[int, date]], now: float) -> int:
        """Note posts of channels and dates that are too late; how many were not known yet."""
        with self._database.conn:
            return self._database.conn.executemany(
                "insert or ignore into posts values (?, ?, 'skipped', ?, null, ?, 0, '')",
                [(channel, day.isoformat(), now, now) for channel, day in late],
            ).rowcount

    def expire(self, now: float, seconds: float) -> int:
        """Give claims up that nobody could settle for so long; how many."""
        with self._database.conn:
            return self._database.execute(
                "update posts set state = 'unknown' where state = 'claimed' and first_at < ? and at <= ?",
                (now - seconds, now - LEASE_SECONDS),
            ).rowcount

    def post(self, channel: int, day: date) -> Post | None:
        """What is known of a post."""
        row = self._database.execute(
            "select state, at, message, first_at, tries, error from posts where channel = ? and day = ?",
            (channel, day.isoformat()),
        ).fetchone()
        return Post(*row) if row else None

    def settled(self, days: Iterable[date], claimed: bool = False) -> set[tuple[int, str]]:
        """Channel and date of posts that need nothing more, among some dates; with claimed ones if wanted."""
        names = sorted({day.isoformat() for day in days})
        marks = ", ".join("?" * len(names))
        rows = self._database.execute(
            f"select channel, day from posts where day in ({marks}) and (? or state != 'claimed')",  # noqa: S608 - only marks
            (*names, int(claimed)),
        )
        return {(row[0], row[1]) for row in rows.fetchall()}

    def last_posted(self, channel: int) -> tuple[str, float] | None:
        """Date and time of the last post that arrived."""
        row = self._database.execute(
            "select day, at from posts where channel = ? and state = 'posted' order by at desc limit 1", (channel,)
        ).fetchone()
        return (str(row[0]), float(row[1])) if row else None

    def skipped_since(self, channel: int, day: str) -> list[str]:
        """Dates after a day whose posts were skipped."""
        rows = self._database.execute(
            "select day from posts where channel = ? and day > ? and state = 'skipped' order by day", (channel, day)
        )
        return [str(row[0]) for row in rows.fetchall()]

    def prune(self, now: float) -> None:
        """Drop posts of more than a year ago."""
        with self._database.conn:
            self._database.execute("delete from posts where at < ?", (now - KEEP_POSTS_DAYS * DAY,))

    # alerts -------------------------------------------------------------------------------------------------------

    def alert_state(self, channel: int, key: str) -> tuple[bool, float]:
        """Whether an alert has fired and not been armed since, and when it fired last."""
        row = self._database.execute(
            "select fired, at from alerts where channel = ? and key = ?", (channel, key)
        ).fetchone()
        return (bool(row[0]), float(row[1])) if row else (False, 0.0)

    def claim_alert(self, channel: int, key: str, now: float) -> tuple[Claim, float] | None:
        """Take on telling of a crossing, and since when it is tried; None: it is another's, or told."""
        with self._database.conn:
            self._database.execute("begin immediate")
            self._database.execute("insert or ignore into alerts values (?, ?, 0, 0, 0, 0)", (channel, key))
            fired, claimed, first = self._database.execute(
                "select fired, claimed, first_at from alerts where channel = ? and key = ?", (channel, key)
            ).fetchone()
            if fired or claimed > now - LEASE_SECONDS:
                return None
            first = first or now
            self._database.execute(
                "update alerts set claimed = ?, first_at = ? where channel = ? and key = ?", (now, first, channel, key)
            )
            return ("again" if claimed else "new"), first

    def settle_alert(self, channel: int, key: str, now: float) -> None:
        """The crossing is told of, or never will be."""
        with self._database.conn:
            self._database.execute(
                "update alerts set fired = 1, at = ?, claimed = 0, first_at = 0 where channel = ? and key = ?",
                (now, channel, key),
            )

    def release_alert(self, channel: int, key: str, now: float, seconds: float) -> None:
        """Leave it to be looked into in so many seconds: nobody knows whether the sentence arrived."""
        with self._database.conn:
            self._database.execute(
                "update alerts set claimed = ? where channel = ? and key = ? and fired = 0",
                (now - LEASE_SECONDS + seconds, channel, key),
            )

    def arm(self, channel: int, key: str) -> None:
        """The price is well above the threshold again: the next crossing is told."""
        with self._database.conn:
            self._database.execute("update alerts set fired = 0 where channel = ? and key = ?", (channel, key))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


COLUMNS = ("channel", "guild", "by", "since", "enabled", "failures")
_ROW = "channel, guild, owner, wanted, since, enabled, failures"


def _subscription(row: tuple[Any, ...]) -> Subscription:
    channel, guild, by, wanted, since, enabled, failures = row
    told = json.loads(wanted)
    told["alerts"] = tuple(Alert(**one) for one in told["alerts"])
    for name in ("gpus", "classes", "workloads"):
        told[name] = tuple(told[name])
    return Subscription(
        channel=channel, guild=guild, by=by, since=since, enabled=bool(enabled), failures=failures, **told
    )
