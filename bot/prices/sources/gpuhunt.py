"""gpuhunt's published catalogue, through its library (the extra ``prices``).

Its own setting GPUHUNT_CATALOG_URL leads to another address.
"""

import hashlib
import logging
import socket
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.prices.naming import NotTold, card_of
from bot.prices.offers import Offer, ProviderClass
from bot.prices.regions import region_class
from bot.prices.sources import Fetched, SourceFailed
from bot.prices.sources.skypilot import HIGHEST_USD_PER_GPU_HOUR, cheapest_of_region
from bot.prices.sources.web import SECONDS_SILENT

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
    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_SILENT)  # the library sets none: it would wait for a silent server for ever
    try:
        catalogue.load()
        items = [item for part in catalogue.catalog.values() for item in part.items if item.gpu_count]
    except (gpuhunt.GPUHuntError, OSError, ValueError, KeyError) as error:
        raise SourceFailed(f"gpuhunt's catalogue cannot be read: {error}") from None
    finally:
        socket.setdefaulttimeout(patience)
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
