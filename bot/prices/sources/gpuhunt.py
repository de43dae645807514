"""gpuhunt's published catalogue, through its library (the extra ``prices``).

Its own setting GPUHUNT_CATALOG_URL leads to another address. The library sets no time limit, and a server that sends a
byte now and then would hold its threads for ever: it works in a process of its own, which can be ended.
"""

import hashlib
import logging
import multiprocessing
import socket
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from bot.parent import end_with_parent
from bot.prices.naming import NotTold, card_of
from bot.prices.offers import Offer, ProviderClass
from bot.prices.regions import region_class
from bot.prices.sources import Fetched, SourceFailed
from bot.prices.sources.skypilot import HIGHEST_USD_PER_GPU_HOUR, cheapest_of_region
from bot.prices.sources.web import SECONDS_IN_ALL, SECONDS_SILENT

NAMES = {"lambdalabs": "lambda", "vastai": "vast"}
CLASSES: dict[str, ProviderClass] = {
    "aws": "hyperscaler", "azure": "hyperscaler", "gcp": "hyperscaler", "oci": "hyperscaler", "vast": "marketplace",
}  # fmt: skip
"""Others are neoclouds."""


@dataclass(frozen=True, slots=True)
class GpuHunt:
    """Every provider that the library's catalogue packs; those it would ask one by one are not asked."""

    name: str = "gpuhunt"

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        """The catalogue's offers; ``etag`` holds the versions of its parts."""
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe(duplex=False)
        helper = spawn.Process(target=_send, args=(theirs, now, etag), daemon=True)
        helper.start()
        theirs.close()
        try:
            found = ours.recv() if ours.poll(SECONDS_IN_ALL) else _failed(f"it takes longer than {SECONDS_IN_ALL:g} s")
        except EOFError:
            found = _failed("the process that reads it is gone")
        finally:
            helper.kill()
            helper.join()
            ours.close()
        if isinstance(found, SourceFailed):
            raise found
        return found  # type: ignore[no-any-return]


def _failed(why: object) -> SourceFailed:
    return SourceFailed(f"gpuhunt's catalogue cannot be read: {why}")


def _send(to: Connection, now: datetime, etag: str) -> None:
    """What the process does."""
    end_with_parent()
    socket.setdefaulttimeout(SECONDS_SILENT)
    try:
        to.send(_fetched(now, etag))
    except SourceFailed as error:
        to.send(error)


def _fetched(now: datetime, etag: str) -> Fetched | None:
    items, versions = _loaded()
    if etag and etag == versions:
        return None
    reasons: Counter[str] = Counter()
    offers = [offer for item in items if (offer := _offer(item, now, reasons))]
    digest = hashlib.sha256(versions.encode()).hexdigest()
    covers = frozenset(NAMES.get(name, name) for name in (part.split("=")[0] for part in versions.split()))
    return Fetched(cheapest_of_region(offers), len(items), dict(reasons), versions, digest, covers)


def _loaded() -> tuple[list[Any], str]:
    """The items of the catalogue, and the versions of its parts. Raises SourceFailed."""
    try:
        import gpuhunt
    except ImportError:
        raise SourceFailed("gpuhunt is not installed; it comes with: pip install 'vram-bot[prices]'") from None
    logging.getLogger("gpuhunt").setLevel(logging.CRITICAL)  # it writes a traceback for each part that it cannot reach
    catalogue = gpuhunt.Catalog(balance_resources=False, auto_reload=False)
    try:
        catalogue.load()
        items = [item for part in catalogue.catalog.values() for item in part.items if item.gpu_count]
    except (gpuhunt.GPUHuntError, OSError, ValueError, KeyError) as error:
        raise _failed(error) from None
    return items, " ".join(f"{name}={part.version}" for name, part in sorted(catalogue.catalog.items()))


def _offer(item: Any, now: datetime, reasons: Counter[str]) -> Offer | None:
    provider = NAMES.get(item.provider, item.provider)
    each = item.price / item.gpu_count
    if not 0 < each <= HIGHEST_USD_PER_GPU_HOUR:
        reasons["no price, or over 100 USD per card and hour"] += 1
        return None
    try:
        gpu = card_of(str(item.gpu_name), item.gpu_memory, provider, item.instance_name)
    except NotTold as reason:
        reasons[str(reason)] += 1
        return None
    return Offer(
        gpu=gpu, provider=provider, provider_class=CLASSES.get(provider, "neocloud"), instance=item.instance_name,
        gpu_count=item.gpu_count, region=item.location, region_class=region_class(item.location), spot=item.spot,
        usd_per_gpu_hour=round(each, 4), native_price=round(each, 4), currency="USD",
        as_of=now.date().isoformat(), source="gpuhunt catalogue", url="https://github.com/dstackai/gpuhunt",
    )  # fmt: skip
