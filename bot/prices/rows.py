"""Offers as rows of the history, and which source is believed where several speak of a provider. Pure."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from bot.prices.offers import Offer

Row = tuple[Any, ...]
DAY = 86_400.0
PREFERRED = ("table", "gpuhunt")
"""Where several sources speak of a provider, these are believed first, in this order."""
BEHIND = 1.5 * DAY
"""A source that was silent for so much longer than another is not preferred to it."""

COLUMNS = (
    "offers.source, offers.gpu, offers.provider, offers.provider_class, offers.instance, offers.gpu_count,"
    " offers.region, offers.region_class, offers.spot, seen.usd, seen.native, seen.currency, offers.dated,"
    " offers.told_by, offers.url, offers.note, offers.statistic, offers.n_offers, seen.quality, seen.reason,"
    " offers.last_seen, offers.valid_until, seen.at"
)
AT, _SEEN = 22, 20
"""Where in a row the time of the price stands, and when a source confirmed it last."""


END_OF_TIME = 9e15


def offer_of(row: Row, until: float = END_OF_TIME) -> Offer:
    """The offer of a row of these columns, as it was known at a time: no later day is told of it."""
    (_, gpu, provider, classed, instance, count, region, part, spot, usd, native, currency, dated, told_by, url, note,
     statistic, n_offers, quality, reason, last_seen, valid_until, _at) = row  # fmt: skip
    seen = min(last_seen, until)
    day = day_of(seen)
    return Offer(
        gpu=gpu, provider=provider, provider_class=classed, instance=instance, gpu_count=count, region=region,
        region_class=part, spot=bool(spot), usd_per_gpu_hour=usd, native_price=native, currency=currency,
        as_of=min(dated or day, day), source=told_by, url=url, note=note, statistic=statistic, n_offers=n_offers,
        quality=quality, reason=reason, seen_at=datetime.fromtimestamp(seen, UTC), valid_until=valid_until,
    )  # fmt: skip


def day_of(seconds: float) -> str:
    """The day of a time in seconds of UTC."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def of_best_source(rows: Iterable[tuple[Row, Offer]]) -> Iterator[Offer]:
    """A provider is taken from one source alone, or it would count twice: the one believed first that is not behind."""
    listed = list(rows)
    seen: dict[str, dict[str, float]] = {}
    for row, offer in listed:
        by_source = seen.setdefault(offer.provider, {})
        by_source[row[0]] = max(by_source.get(row[0], 0.0), row[_SEEN])
    best = {provider: _best(by_source) for provider, by_source in seen.items()}
    yield from (offer for row, offer in listed if row[0] == best[offer.provider])


def _best(seen: dict[str, float]) -> str:
    newest = max(seen.values())
    current = [source for source, at in seen.items() if newest - at <= BEHIND]
    return min(current, key=lambda source: (PREFERRED.index(source) if source in PREFERRED else len(PREFERRED), source))
