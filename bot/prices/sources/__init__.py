"""Where prices come from: each source gives offers, and says what it left out and why."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.prices.offers import Offer


class SourceFailed(Exception):
    """A source gave nothing that can be used; the text is one sentence for the one who runs the bot."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source said: its offers, the rows it left out with reasons, and the marks to ask for news by.

    ``covers``: the providers that it spoke of this time; empty: all that it ever speaks of.
    """

    offers: list[Offer]
    rows: int
    left_out: dict[str, int] = field(default_factory=dict)
    etag: str = ""
    sha256: str = ""
    covers: frozenset[str] = frozenset()


class Source(Protocol):
    """One place that publishes prices."""

    @property
    def name(self) -> str:
        """Its name in the history."""
        ...

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        """Ask it; None when nothing changed since ``etag``. Raises SourceFailed; takes seconds, not minutes."""
        ...
