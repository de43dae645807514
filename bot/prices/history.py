"""What the sources said over time, in SQLite: an offer keeps its identity, a price is written down when it changes.

Times are seconds of UTC. One thread uses a history at a time; several processes may share the file.
"""

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlite_utils

from bot.prices.checks import checked, moved
from bot.prices.offers import Offer, Quality
from bot.prices.rows import AT, COLUMNS, DAY, END_OF_TIME, Row, day_of, of_best_source, offer_of
from bot.prices.sources import Fetched

MISSED_UNTIL_GONE = 2
"""Successful runs without an offer after which it counts as removed."""
KEEP_DAYS, KEEP_RUNS_DAYS = 400.0, 60.0
SAME = 1e-6
KEY = ("source", "provider", "instance", "region", "gpu", "gpu_count", "spot")
WAIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """The last word of a source: when, how it went (ok, unchanged, failed), and when it last went well."""

    source: str
    at: float
    status: str
    error: str
    good_at: float | None


class History:
    """The prices file of a folder."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite_utils.Database(str(path), execute_plugins=False)
        self._database.execute(f"pragma busy_timeout = {WAIT_MS}")
        self._database.enable_wal()
        self._create()

    def _create(self) -> None:
        runs, offers, seen = (self._database.table(name) for name in ("runs", "offers", "observations"))
        runs.create(
            {"id": int, "source": str, "at": float, "status": str, "etag": str, "sha256": str, "rows": int,
             "accepted": int, "held": int, "error": str},
            pk="id", if_not_exists=True,
        )  # fmt: skip
        offers.create(
            {"id": int, "source": str, "provider": str, "instance": str, "region": str, "gpu": str, "gpu_count": int,
             "spot": int, "provider_class": str, "region_class": str, "statistic": str, "n_offers": int, "told_by": str,
             "url": str, "note": str, "dated": str, "valid_until": str, "first_seen": float, "last_seen": float,
             "missed": int, "gone": float},
            pk="id", if_not_exists=True,
        )  # fmt: skip
        seen.create(
            {"offer": int, "at": float, "usd": float, "native": float, "currency": str, "quality": str, "reason": str},
            pk=("offer", "at"), if_not_exists=True,
        )  # fmt: skip
        self._database.table("notes").create({"name": str, "text": str}, pk="name", if_not_exists=True)
        runs.create_index(["source", "at"], if_not_exists=True)
        offers.create_index(list(KEY), unique=True, if_not_exists=True)
        offers.create_index(["gpu"], if_not_exists=True)

    # writing ------------------------------------------------------------------------------------------------------

    def record(self, source: str, fetched: Fetched | None, now: float) -> None:
        """What a source said at a time; None: that nothing changed. All of it, or nothing."""
        with self._database.conn:
            self._database.execute("begin immediate")
            if fetched is None:
                self._confirm(source, now)
                self._ran(source, now, "unchanged", etag=self.etag(source))
                return
            offers = checked(fetched.offers)
            present = {self._observe(source, offer, now) for offer in offers}
            self._miss(source, present, fetched.covers, now)
            self._note(f"covers {source}", json.dumps(sorted(fetched.covers)))
            held = sum(one.quality == "quarantined" for one in offers)
            self._ran(source, now, "ok", etag=fetched.etag, sha256=fetched.sha256, rows=fetched.rows,
                      accepted=len(offers) - held, held=held)  # fmt: skip

    def failed(self, source: str, error: str, now: float) -> None:
        """That a source could not be asked; what it said before stays."""
        with self._database.conn:
            self._ran(source, now, "failed", error=error[:500])

    def keep_note(self, name: str, text: str) -> None:
        """Keep a fact beside the offers."""
        with self._database.conn:
            self._note(name, text)

    def _note(self, name: str, text: str) -> None:
        self._database.execute("insert or replace into notes values (?, ?)", (name, text))

    def note(self, name: str) -> str | None:
        """A fact kept beside the offers."""
        row = self._database.execute("select text from notes where name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def _ran(self, source: str, now: float, status: str, **values: Any) -> None:
        row = {"etag": "", "sha256": "", "rows": 0, "accepted": 0, "held": 0, "error": "", **values}
        names = ("source", "at", "status", *row)
        marks = ", ".join("?" * len(names))
        self._database.execute(
            f"insert into runs ({', '.join(names)}) values ({marks})",  # noqa: S608 - names of ours
            (source, now, status, *row.values()),
        )

    def _confirm(self, source: str, now: float) -> None:
        """What was there is there; what was missing is missing for another run."""
        self._database.execute(
            "update offers set last_seen = ? where source = ? and gone is null and missed = 0", (now, source)
        )
        rows = self._database.execute(
            "select id from offers where source = ? and gone is null and missed = 0", (source,)
        ).fetchall()
        covers = frozenset(json.loads(self.note(f"covers {source}") or "[]"))
        self._miss(source, {row[0] for row in rows}, covers, now)

    def _observe(self, source: str, offer: Offer, now: float) -> int:
        """Note an offer; its number."""
        number = self._number(source, offer, now)
        last = self._database.execute(
            "select usd, quality, reason from observations where offer = ? order by at desc limit 1", (number,)
        ).fetchone()
        quality, reason = self._taken(offer, number, last)
        same = last and abs(last[0] - offer.usd_per_gpu_hour) < SAME and last[1] == quality
        if not same:
            self._database.execute(
                "insert or replace into observations values (?, ?, ?, ?, ?, ?, ?)",
                (number, now, offer.usd_per_gpu_hour, offer.native_price, offer.currency, quality, reason),
            )
        return number

    def _taken(self, offer: Offer, number: int, last: tuple[float, str, str] | None) -> tuple[Quality, str]:
        """The quality of a price in view of what the offer cost before."""
        if last is None or offer.quality == "quarantined":
            return offer.quality, offer.reason
        twice = abs(last[0] - offer.usd_per_gpu_hour) < SAME
        good = self._database.execute(
            "select usd from observations where offer = ? and quality != 'quarantined' order by at desc limit 1",
            (number,),
        ).fetchone()
        return moved(offer, good[0], twice) if good else (offer.quality, offer.reason)

    def _number(self, source: str, offer: Offer, now: float) -> int:
        key = (source, offer.provider, offer.instance, offer.region, offer.gpu, offer.gpu_count, int(offer.spot))
        dated = "" if offer.as_of == day_of(now) else offer.as_of
        facts = (offer.provider_class, offer.region_class, offer.statistic, offer.n_offers, offer.source, offer.url,
                 offer.note, dated, offer.valid_until)  # fmt: skip
        found = self._database.execute(
            f"select id from offers where {' and '.join(f'{name} = ?' for name in KEY)}",  # noqa: S608 - names of ours
            key,
        ).fetchone()
        if found:
            self._database.execute(
                "update offers set provider_class = ?, region_class = ?, statistic = ?, n_offers = ?, told_by = ?,"
                " url = ?, note = ?, dated = ?, valid_until = ?, last_seen = ?, missed = 0, gone = null where id = ?",
                (*facts, now, found[0]),
            )
            return int(found[0])
        names = (*KEY, "provider_class", "region_class", "statistic", "n_offers", "told_by", "url", "note", "dated",
                 "valid_until", "first_seen", "last_seen", "missed")  # fmt: skip
        cursor = self._database.execute(
            f"insert into offers ({', '.join(names)}) values ({', '.join('?' * len(names))})",  # noqa: S608
            (*key, *facts, now, now, 0),
        )
        return int(cursor.lastrowid or 0)

    def _miss(self, source: str, present: set[int], covers: frozenset[str], now: float) -> None:
        """Count a run without an offer; twice, and it is gone."""
        rows = self._database.execute(
            "select id, provider, missed from offers where source = ? and gone is null", (source,)
        ).fetchall()
        for number, provider, missed in rows:
            if number not in present and (not covers or provider in covers):
                gone = now if missed + 1 >= MISSED_UNTIL_GONE or source == "table" else None
                self._database.execute(
                    "update offers set missed = ?, gone = ? where id = ?", (missed + 1, gone, number)
                )

    def prune(self, now: float, keep_days: float = KEEP_DAYS) -> int:
        """Drop what is older than that, but for the price that an offer still has; how many rows that were."""
        with self._database.conn:
            dropped = self._database.execute(
                "delete from observations where at < ? and exists (select 1 from observations later"
                " where later.offer = observations.offer and later.at > observations.at and later.at < ?)",
                (now - keep_days * DAY, now - keep_days * DAY),
            ).rowcount
            dropped += self._database.execute("delete from offers where gone < ?", (now - keep_days * DAY,)).rowcount
            self._database.execute("delete from observations where offer not in (select id from offers)")
            self._database.execute("delete from runs where at < ?", (now - KEEP_RUNS_DAYS * DAY,))
        if dropped:
            with contextlib.suppress(sqlite3.OperationalError):  # another process reads: the next time does as well
                self._database.vacuum()
        return dropped

    # reading ------------------------------------------------------------------------------------------------------

    def etag(self, source: str) -> str:
        """The mark by which a source knows what it sent last."""
        row = self._database.execute(
            "select etag from runs where source = ? and status != 'failed' order by at desc, id desc limit 1", (source,)
        ).fetchone()
        return str(row[0]) if row else ""

    def runs(self, until: float = END_OF_TIME) -> list[Run]:
        """The last run of each source, up to a time."""
        rows = self._database.execute(
            "select source, at, status, error, (select max(at) from runs good where good.source = runs.source"
            " and good.status != 'failed' and good.at <= ?) from runs"
            " where id in (select max(id) from runs where at <= ? group by source) order by source",
            (until, until),
        ).fetchall()
        return [Run(*row) for row in rows]

    def offers(self) -> list[Offer]:
        """Every offer that is not gone at its last believed price; a provider's from the source believed first."""
        rows = self._rows("offers.gone is null", ())
        return list(of_best_source(rows))

    def held_back(self) -> list[Offer]:
        """Offers whose newest price is not believed, at that price and with the reason."""
        rows = self._database.execute(
            f"select {COLUMNS} from offers join observations seen on seen.offer = offers.id"  # noqa: S608 - ours
            " and seen.at = (select max(at) from observations newest where newest.offer = offers.id)"
            " where offers.gone is null and seen.quality = 'quarantined'"
        ).fetchall()
        return [offer_of(row) for row in rows]

    def at(self, moment: float) -> dict[tuple[Any, ...], Offer]:
        """Every offer that stood at a time, by source and key, with its price then."""
        where = "offers.first_seen <= ? and (offers.gone is null or offers.gone > ?)"
        rows = self._rows(where, (moment, moment), moment)
        return {(row[0], *offer.key): offer for row, offer in rows}

    def changes(self, since: float, until: float) -> tuple[list[Offer], list[Offer]]:
        """Offers that were first seen between two times, and those that were gone by then."""
        new = self._rows("offers.first_seen > ? and offers.first_seen <= ? and offers.gone is null", (since, until))
        gone = self._rows("offers.gone > ? and offers.gone <= ?", (since, until))
        return [offer for _, offer in new], [offer for _, offer in gone]

    def first_at(self) -> float | None:
        """When the history begins; None for an empty one."""
        row = self._database.execute("select min(first_seen) from offers").fetchone()
        return float(row[0]) if row and row[0] is not None else None

    def steps(self, gpu: str, spot: bool, since: float, until: float) -> list[tuple[Offer, float, float, float]]:
        """Each price of each offer of a card, from a time to a time, as far as it is between two times."""
        rows = self._database.execute(
            f"select {COLUMNS}, lead(seen.at) over (partition by offers.id order by seen.at), offers.gone"  # noqa: S608
            " from offers join observations seen on seen.offer = offers.id"
            " where offers.gpu = ? and offers.spot = ? and seen.quality != 'quarantined'",
            (gpu, int(spot)),
        ).fetchall()
        found = []
        for row in rows:
            offer, begin = offer_of(row[:-2]), float(row[AT])
            end = min(x for x in (row[-2], row[-1], offer.seen_at.timestamp() + DAY if offer.seen_at else None, until)
                      if x is not None)  # fmt: skip
            if end >= since and begin <= until:
                found.append((offer, max(begin, since), end, offer.usd_per_gpu_hour))
        return found

    def _rows(self, where: str, values: tuple[Any, ...], moment: float = END_OF_TIME) -> list[tuple[Row, Offer]]:
        rows = self._database.execute(
            f"select {COLUMNS} from offers join observations seen on seen.offer = offers.id and seen.at ="  # noqa: S608
            " (select max(at) from observations good where good.offer = offers.id and good.quality != 'quarantined'"
            f" and good.at <= ?) where {where}",
            (moment, *values),
        ).fetchall()
        return [(row, offer_of(row, moment)) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
