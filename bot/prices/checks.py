"""Which prices are believed: pure checks against the others of the same card, class and kind."""

from collections.abc import Iterable, Sequence

from bot.prices.offers import Offer, Quality
from bot.prices.ranking import middle
from bot.prices.snapshot import snapshot_offers

TIMES = 3.0
"""A price more than three times above or below the median of its class is held back; see docs/prices.md."""
ENOUGH = 3
SUSPECT_UP, SUSPECT_DOWN = 1.30, 0.70
HELD_UP, HELD_DOWN = 2.00, 0.40
"""Moves of one offer since it was seen last: doubtful, and held back until seen twice."""
SAME_MULTIPLE = 0.03

Group = tuple[str, str, bool]


def group_of(offer: Offer) -> Group:
    """What a price is compared with: the same card, provider class and kind. Classes are never pooled."""
    return offer.gpu, offer.provider_class, offer.spot


def checked(offers: Sequence[Offer]) -> list[Offer]:
    """The offers with their quality: quarantined with a reason where the class does not bear the price out."""
    medians = _medians(offers)
    singles = {
        (one.provider, one.gpu, one.spot, one.region_class): one.usd_per_gpu_hour
        for one in offers
        if one.gpu_count == 1
    }
    return [_judged(offer, medians.get(group_of(offer)), singles) for offer in offers]


def _judged(offer: Offer, middle: float | None, singles: dict[tuple[str, str, bool, str], float]) -> Offer:
    if middle and not middle / TIMES <= offer.usd_per_gpu_hour <= middle * TIMES:
        ratio = offer.usd_per_gpu_hour / middle
        return offer._replace(quality="quarantined", reason=f"{ratio:.2f} times the median of its class")
    single = singles.get((offer.provider, offer.gpu, offer.spot, offer.region_class))
    if offer.gpu_count > 1 and single:
        multiple = offer.usd_per_gpu_hour / single / offer.gpu_count
        if abs(multiple - 1) <= SAME_MULTIPLE:
            return offer._replace(quality="suspect", reason="looks as if it was not divided by the cards")
    return offer


def _medians(offers: Sequence[Offer]) -> dict[Group, float]:
    """The median over providers of each group with enough of them; else over the snapshot's, where it has enough."""
    known = _middle(snapshot_offers())
    return {**known, **_middle(offers)}


def _middle(offers: Iterable[Offer]) -> dict[Group, float]:
    grouped: dict[Group, list[float]] = {}
    for one in offers:
        if one.provider_class not in ("own", "index"):
            grouped.setdefault(group_of(one), []).append(one.usd_per_gpu_hour)
    return {group: middle(prices) for group, prices in grouped.items() if len(prices) >= ENOUGH}


def moved(offer: Offer, before: float, seen_twice: bool) -> tuple[Quality, str]:
    """How a price is taken that was another before: a great step is doubtful once, and plain when it stays."""
    if offer.quality == "quarantined":
        return offer.quality, offer.reason
    ratio = offer.usd_per_gpu_hour / before
    if seen_twice or SUSPECT_DOWN <= ratio <= SUSPECT_UP:
        return offer.quality, offer.reason
    reason = f"moved {ratio - 1:+.0%} at once"
    if ratio > HELD_UP or ratio < HELD_DOWN:
        return "quarantined", reason
    return "suspect", reason
