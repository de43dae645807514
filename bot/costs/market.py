"""Prices of a card by class of provider; two classes are never pooled."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bot.prices.offers import CLASSES, Offer, offers_for
from bot.prices.ranking import is_current, middle, ranked
from estimator.catalogue import GpuMatch

PREFERRED = ("own", "neocloud", "broker", "marketplace", "hyperscaler", "marketplace-cn", "hyperscaler-cn", "lease-cn")
"""Whose median stands for "the" price where none is named: clouds that specialise in GPUs where there are any."""
PREFERRED_IN_CHINA = ("own", "marketplace-cn", "hyperscaler-cn", "lease-cn", *PREFERRED[1:5])


class ClassPrice(NamedTuple):
    """USD per card and hour in one class: least, median and most of its listings.

    ``cheapest`` is the least that may be named so: of today's sources, else of those with a day, else any.
    ``current``: one of today's sources says so.
    """

    gpu: str
    provider_class: str
    low: float
    middle: float
    high: float
    listings: int
    cheapest: Offer
    current: bool = False

    @property
    def as_of(self) -> str:
        """The day of the cheapest listing; empty where the source says none."""
        return self.cheapest.as_of


def class_prices(
    gpu: str, spot: bool = False, among: Sequence[Offer] | None = None, now: datetime | None = None
) -> list[ClassPrice]:
    """The classes in which a card is offered, in the order in which they are told; blends of others are left out.

    ``among`` None: what is known now.
    """
    offers = [offer for offer in offers_for(gpu, spot=spot, among=among) if offer.provider_class != "index"]
    found = ((name, [offer for offer in offers if offer.provider_class == name]) for name in CLASSES)
    return [_priced(gpu, name, listed, now or datetime.now(UTC)) for name, listed in found if listed]


def prices_of(match: GpuMatch, spot: bool = False) -> list[ClassPrice]:
    """The classes for a card that was asked for; for a name that several cards go by, the first that has offers."""
    names = dict.fromkeys((match.name, *match.candidates))
    return next((found for name in names if (found := class_prices(name, spot))), [])


def preferred(prices: Iterable[ClassPrice], wanted: str | None = None, country: str | None = None) -> ClassPrice | None:
    """The class whose price is taken: the one named, else the first of the usual order."""
    by_name = {price.provider_class: price for price in prices}
    if wanted:
        return by_name.get(wanted)
    order = PREFERRED_IN_CHINA if country == "cn" else PREFERRED
    return next((by_name[name] for name in order if name in by_name), None)


def _priced(gpu: str, name: str, offers: list[Offer], now: datetime) -> ClassPrice:
    """What a class asks: where today's sources speak of it, what they say alone."""
    standing = [offer for offer in offers if is_current(offer, now)] or offers
    prices = [offer.usd_per_gpu_hour for offer in standing]
    dated = ranked(standing, now, 1).offers or [offer for offer in standing if offer.day is not None] or standing
    cheapest = min(dated, key=lambda offer: offer.usd_per_gpu_hour)
    listings, current = len(standing), is_current(cheapest, now)
    return ClassPrice(gpu, name, min(prices), middle(prices), max(prices), listings, cheapest, current)
