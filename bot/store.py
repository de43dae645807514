"""What the bot remembers for a limited time: what was understood of questions, never a message's own words.

``cards`` holds the runs behind each card's buttons, ``talks`` the last question of a person in a channel, ``notes``
facts about the bot itself. One thread uses a store at a time.
"""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import sqlite_utils

DAY = 86_400.0
TALK_DAYS = 1.0
"""A question after more than a day's silence begins anew."""
ID_LETTERS = "0123456789abcdefghijkmnpqrstuvwxyz"
ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Talk:
    """The question that a follow-up builds upon: what is asked, and the runs as they were spoken of."""

    question: str
    spoken: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class StoredCard:
    """The answer behind a card: the question, its runs, and what each button does."""

    lang: str
    question: str
    runs: list[dict[str, Any]]
    actions: list[dict[str, Any]] = field(default_factory=list)


class Store:
    """A SQLite file; cards older than ``keep_days`` days and talks older than a day are dropped as new ones come."""

    def __init__(self, path: Path, keep_days: float, clock: Callable[[], float] = time.time) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite_utils.Database(str(path), execute_plugins=False)
        self._seconds = {"cards": keep_days * DAY, "talks": min(keep_days, TALK_DAYS) * DAY}
        self._clock = clock
        self._database.enable_wal()
        self._create()

    def _create(self) -> None:
        cards, talks, notes = (self._database.table(name) for name in ("cards", "talks", "notes"))
        cards.create({"id": str, "user": int, "made": float, "card": str}, pk="id", if_not_exists=True)
        talks.create(
            {"channel": int, "user": int, "made": float, "talk": str}, pk=("channel", "user"), if_not_exists=True
        )
        notes.create({"name": str, "text": str}, pk="name", if_not_exists=True)
        for table in (cards, talks):
            table.create_index(["made"], if_not_exists=True)
            table.create_index(["user"], if_not_exists=True)

    def keep_card(self, user: int, card: StoredCard) -> str:
        """Keep a card that was made for a user; its new id."""
        name = "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))
        self._keep("cards", {"id": name, "user": user, "card": json.dumps(asdict(card))})
        return name

    def card(self, name: str) -> StoredCard | None:
        """The card of an id, None when it is too old or was deleted."""
        found = self._found("cards", "id = ?", (name,), "card")
        return StoredCard(**found) if found else None

    def keep_talk(self, channel: int, user: int, talk: Talk) -> None:
        """Keep what a person asked last in a channel."""
        self._keep("talks", {"channel": channel, "user": user, "talk": json.dumps(asdict(talk))})

    def talk(self, channel: int, user: int) -> Talk | None:
        """What a person asked last in a channel, None when that was too long ago."""
        found = self._found("talks", "channel = ? and user = ?", (channel, user), "talk")
        return Talk(**found) if found else None

    def forget(self, user: int) -> int:
        """Delete everything that is kept of a user; how many rows that were."""
        with self._database.conn:
            return sum(
                self._database.execute(f"delete from {table} where user = ?", (user,)).rowcount  # noqa: S608
                for table in ("cards", "talks")
            )

    def note(self, name: str) -> str | None:
        """A fact about the bot itself."""
        row = self._database.execute("select text from notes where name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def keep_note(self, name: str, text: str) -> None:
        """Keep a fact about the bot itself."""
        self._database.table("notes").upsert({"name": name, "text": text}, pk="name")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _keep(self, table: str, row: dict[str, Any]) -> None:
        oldest = self._clock() - self._seconds[table]
        with self._database.conn:
            self._database.execute(f"delete from {table} where made < ?", (oldest,))  # noqa: S608
        self._database.table(table).insert({**row, "made": self._clock()}, replace=True)

    def _found(self, table: str, where: str, values: tuple[Any, ...], column: str) -> dict[str, Any] | None:
        row = self._database.execute(
            f"select {column} from {table} where {where} and made >= ?",  # noqa: S608
            (*values, self._clock() - self._seconds[table]),
        ).fetchone()
        found: dict[str, Any] | None = json.loads(row[0]) if row else None
        return found
