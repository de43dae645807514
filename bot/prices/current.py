"""What is known now: the administrator's table, the history's offers, and the embedded snapshot for the rest."""

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.folders import data_folder
from bot.prices.checks import checked
from bot.prices.offers import Offer
from bot.prices.purchases import Purchase
from bot.prices.snapshot import snapshot_fault, snapshot_offers

if TYPE_CHECKING:
    from bot.prices.history import History
    from bot.prices.sources.table import OwnTable

log = logging.getLogger("bot.prices")
FILE = "prices.db"
TABLES = ("prices.csv", "prices.yaml", "prices.yml")
REREAD_SECONDS = 30.0
OWN_PURCHASES = "own purchases"


class Market(NamedTuple):
    """All that is known: offers (held back ones among them), own purchase prices, a sentence for each failed source."""

    offers: tuple[Offer, ...]
    purchases: tuple[Purchase, ...] = ()
    failed: tuple[str, ...] = ()


def current_offers() -> tuple[Offer, ...]:
    """The offers that are known now."""
    return current_market().offers


def current_market() -> Market:
    """What is known now, from the bot's folder; the disk is read twice a minute at most."""
    return _market(data_folder(), int(time.monotonic() / REREAD_SECONDS))


@lru_cache(maxsize=1)
def _market(folder: Path, _when: int) -> Market:
    return market_in(folder, datetime.now(UTC))


def market_in(folder: Path, now: datetime) -> Market:
    """What is known in a folder at a time; the snapshot alone where the folder cannot be used, which is told."""
    try:
        return _market_of(folder, now)
    except OSError as error:
        why = unusable(folder, error)
        log.warning("the prices file cannot be read, the snapshot is used: %s", why)
        return Market(_snapshot(), failed=(why, *_snapshot_failed()))


def _market_of(folder: Path, now: datetime) -> Market:
    """A changed table is read first, then the history and the snapshot."""
    chosen = _chosen_table()
    if not any((folder / name).exists() for name in (FILE, *TABLES)) and chosen is None:
        return Market(_snapshot(), failed=_snapshot_failed())
    from bot.prices.history import History  # the snapshot alone does without SQLite
    from bot.prices.sources.table import table_in

    table = table_in(folder, chosen)
    with _as_os_error(), closing(History(folder / FILE)) as history:
        if table is not None:
            reread(table, history, now)
        failed = tuple(run.error for run in history.runs() if run.status == "failed")
        offers = (*merged(history.offers()), *history.held_back())
        return Market(offers, _own_purchases(history), (*failed, *_snapshot_failed()))


@contextmanager
def history_in(folder: Path) -> Iterator["History | None"]:
    """The history of a folder; None where there is none, or where it cannot be used, which ``market_in`` tells."""
    history = None
    with suppress(OSError):
        if (folder / FILE).exists():
            history = opened(folder)
    try:
        yield history
    finally:
        if history is not None:
            history.close()


def opened(folder: Path) -> "History":
    """The history of a folder, made where there is none. Raises OSError."""
    from bot.prices.history import History

    with _as_os_error():
        return History(folder / FILE)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """SQLite's errors are told as those of the file that they are of."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise OSError(str(error)) from error


def unusable(folder: Path, error: OSError) -> str:
    """Why the prices of a folder cannot be used."""
    return f"{folder / FILE}: {error.strerror or error}"


def reread(table: "OwnTable", history: "History", now: datetime) -> None:
    """Take the table in if it changed; a broken one leaves everything as it was, and is told once."""
    from bot.prices.sources import SourceFailed

    try:
        fetched = table.fetch(now, history.etag(table.name))
        if fetched is not None:
            own = [one._asdict() for one in table.purchases(now)]
            history.record(table.name, fetched, now.timestamp())
            history.keep_note(OWN_PURCHASES, json.dumps(own))
        elif any(run.source == table.name and run.status == "failed" for run in history.runs()):
            history.record(table.name, None, now.timestamp())
    except SourceFailed as error:
        if str(error) not in {run.error for run in history.runs()}:
            log.warning("%s", error)
            history.failed(table.name, str(error), now.timestamp())


def merged(live: Iterable[Offer]) -> tuple[Offer, ...]:
    """Live offers, and of the snapshot those of providers that no source speaks of."""
    found = tuple(live)
    spoken_of = {offer.provider for offer in found}
    return (*found, *(offer for offer in _snapshot() if offer.provider not in spoken_of))


@cache
def _snapshot() -> tuple[Offer, ...]:
    return tuple(checked(snapshot_offers()))


def _snapshot_failed() -> tuple[str, ...]:
    return (snapshot_fault(),) if snapshot_fault() else ()


def _chosen_table() -> Path | None:
    chosen = os.environ.get("VRAM_BOT_PRICE_TABLE")
    return Path(chosen) if chosen else None


def _own_purchases(history: "History") -> tuple[Purchase, ...]:
    return tuple(Purchase(**one) for one in json.loads(history.note(OWN_PURCHASES) or "[]"))
