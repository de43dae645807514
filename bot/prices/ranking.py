"""What may be said of many offers: ranges by class, the cheapest, and how old all of it is. Pure; ``now`` is given."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Literal, NamedTuple

from bot.prices.offers import CLASSES, Offer, ProviderClass

FRESH, CURRENT = timedelta(hours=36), timedelta(days=7)
"""Up to the first a price is told plainly, up to the second with its date as a badge; older ones are not ranked."""
ENOUGH_PROVIDERS = 3
"""Providers from which on a median is told."""
MOST_CHEAPEST = 5

Age = Literal["fresh", "dated", "old", "undated"]


def middle(values: Iterable[float]) -> float:
    """The median; ``statistics`` takes longer to load than all offers to read."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def age_of(offer: Offer, now: datetime) -> Age:
    """How old the price is; a contract in force is fresh."""
    if offer.day is None:
        return "undated"
    if offer.valid_until and offer.valid_until >= now.date().isoformat():
        return "fresh"
    end_of_day = datetime.combine(offer.day, time.max, UTC)
    seen = offer.seen_at if offer.seen_at and offer.as_of == offer.seen_at.date().isoformat() else end_of_day
    age = now - seen
    return "fresh" if age <= FRESH else "dated" if age <= CURRENT else "old"


def once_each(offers: Iterable[Offer]) -> list[Offer]:
    """One price for each provider, card, kind and part of the world: the lowest."""
    best: dict[tuple[str, str, bool, str], Offer] = {}
    for offer in sorted(offers, key=lambda one: one.usd_per_gpu_hour):
        best.setdefault((offer.provider, offer.gpu, offer.spot, offer.region_class), offer)
    return list(best.values())


class Range(NamedTuple):
    """The prices of one card, class and kind: lowest, highest, and the median over providers where there are three."""

    provider_class: ProviderClass
    spot: bool
    low: Offer
    high: Offer
    median_usd: float | None
    n_offers: int
    n_providers: int
    first_day: str
    last_day: str
    n_undated: int
    sources: tuple[str, ...]


def ranges(offers: Sequence[Offer]) -> list[Range]:
    """The ranges of one card, on demand before spot, classes in their order; what is quarantined is left out."""
    groups: dict[tuple[bool, ProviderClass], list[Offer]] = {}
    for offer in offers:
        if offer.quality != "quarantined":
            groups.setdefault((offer.spot, offer.provider_class), []).append(offer)
    return [_range(groups[key], *key) for key in sorted(groups, key=lambda key: (key[0], CLASSES.index(key[1])))]


def _range(offers: list[Offer], spot: bool, provider_class: ProviderClass) -> Range:
    ordered = sorted(offers, key=lambda one: one.usd_per_gpu_hour)
    lowest: dict[str, float] = {}
    for offer in ordered:
        lowest.setdefault(offer.provider, offer.usd_per_gpu_hour)
    days = sorted(offer.as_of for offer in offers if offer.day)
    return Range(
        provider_class=provider_class, spot=spot, low=ordered[0], high=ordered[-1],
        median_usd=middle(lowest.values()) if len(lowest) >= ENOUGH_PROVIDERS else None,
        n_offers=sum(offer.n_offers for offer in offers), n_providers=len(lowest),
        first_day=days[0] if days else "", last_day=days[-1] if days else "",
        n_undated=sum(offer.day is None for offer in offers),
        sources=tuple(sorted({offer.source for offer in offers})),
    )  # fmt: skip


class Ranking(NamedTuple):
    """The cheapest offers; ``as_of``: the newest day of them where none of today's sources has answered."""

    offers: list[Offer]
    as_of: str = ""


def is_current(offer: Offer, now: datetime) -> bool:
    """Whether one of today's sources says so, within a week; the snapshot is never current."""
    return not offer.embedded and age_of(offer, now) in ("fresh", "dated")


def ranked(offers: Sequence[Offer], now: datetime, most: int = MOST_CHEAPEST) -> Ranking:
    """The cheapest that can be rented by the hour, by provider and card.

    Undated offers are never in it; offers older than a week only where there is nothing newer, and then it says so.
    """
    able = [offer for offer in once_each(offers) if offer.may_be_cheapest]
    current = [offer for offer in able if is_current(offer, now)]
    chosen = current or able
    best: dict[tuple[str, str], Offer] = {}
    for offer in sorted(chosen, key=lambda one: one.usd_per_gpu_hour):
        best.setdefault((offer.provider, offer.gpu), offer)
    shown = list(best.values())[:most]
    return Ranking(shown, "" if current or not shown else max(offer.as_of for offer in shown))


def lowest_undated(offers: Sequence[Offer], below: float) -> Offer | None:
    """The lowest offer without a day, where it is below a price."""
    found = [offer for offer in offers if offer.rentable and offer.day is None and offer.usd_per_gpu_hour < below]
    return min(found, key=lambda one: one.usd_per_gpu_hour, default=None)
