"""The dated snapshot that ships with the bot: what is told when no source answers."""

import csv
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

from bot.prices.offers import Offer, ProviderClass

log = logging.getLogger("bot.prices")
DATA = Path(__file__).parent / "data"


def snapshot_offers() -> tuple[Offer, ...]:
    """Every offer of the snapshot; a row with a price on demand and one for spot gives two. Empty without its files."""
    return _read(DATA)[0]


def snapshot_fault() -> str:
    """Why there is no snapshot, in one sentence; "" where there is one."""
    return _read(DATA)[1]


@cache
def _read(folder: Path) -> tuple[tuple[Offer, ...], str]:
    try:
        sources = {row["code"]: row for row in _rows(folder / "sources.csv")}
        rows = _rows(folder / "snapshot.csv")
        return tuple(offer for row in rows for offer in _offers(row, sources[row["source"]])), ""
    except (OSError, ValueError, KeyError) as error:
        fault = f"the embedded price snapshot cannot be read ({error!r}); install vram-bot again"
        log.warning("%s", fault)
        return (), fault


def _rows(path: Path) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(path.read_text("utf-8").splitlines())


def _offers(row: dict[str, str], source: dict[str, str]) -> Iterator[Offer]:
    for spot, column in ((False, "usd_on_demand"), (True, "usd_spot")):
        if not row[column]:
            continue
        price = float(row[column])
        native = float(row["native"]) if row["native"] and not spot else price
        yield Offer(
            gpu=row["gpu"],
            provider=row["provider"],
            provider_class=cast(ProviderClass, row["provider_class"]),
            instance=row["instance"],
            gpu_count=int(row["gpu_count"]),
            region=row["region"],
            region_class=row["region_class"],
            spot=spot,
            usd_per_gpu_hour=price,
            native_price=native,
            currency="USD" if native == price else row["currency"],
            as_of=row["as_of"],
            source=source["source"],
            url=source["url"],
            note=source["note"],
            statistic=row["statistic"],
            n_offers=int(row["n_offers"]),
            embedded=True,
        )
