"""The answer to a price question as data, before it is put into words: every number of the text is in it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.prices.claims import HOURS, Borne, Claim, borne_out
from bot.prices.money import Rates, bundled_rates
from bot.prices.offers import CLASSES, Offer, in_region
from bot.prices.purchases import Purchase, purchases_of
from bot.prices.ranking import Range, age_of, lowest_undated, ranges, ranked
from estimator.catalogue.cards import cards
from estimator.catalogue.gpus import find_gpu
from estimator.errors import EstimatorError

WATCH_LIST = (
    "H100 SXM5 80GB", "H200 SXM 141GB", "B200 SXM", "A100 SXM4 80GB", "L40S", "RTX PRO 6000 Blackwell Server",
    "RTX 5090", "RTX 4090", "RTX 3090", "MI300X",
)  # fmt: skip
"""What is told where nobody names a card."""
_SIZE = re.compile(r"\b\d+ ?gi?b?\b", re.IGNORECASE)
_BOARD = re.compile(r"pcie|sxm|nvl", re.IGNORECASE)
Lows = dict[str, list[tuple[str, float]]]
"""By class, the lowest price in USD of each day."""
MOST_CARDS, MOST_SPOT = 6, 2
HOURS_PER_DAY = 24
SHOPS_DIFFER = 0.10
"""What shops ask at one time lies about so far around what is told: RTX 4090 2,919 to 3,582 USD around 3,130."""


@dataclass(frozen=True, slots=True)
class Priced:
    """An offer as it is told: ``price`` and ``per_day`` are in the currency of the answer, per GPU."""

    gpu: str
    provider: str
    provider_class: str
    spot: bool
    price: float
    per_day: float
    usd_per_gpu_hour: float
    gpu_count: int
    region: str
    as_of: str
    age: str
    source: str
    url: str
    quality: str
    statistic: str
    n_offers: int


@dataclass(frozen=True, slots=True)
class PriceRange:
    """The prices of a class: lowest and highest offer, the median over three providers or more."""

    provider_class: str
    spot: bool
    low: Priced
    high: Priced
    median: float | None
    n_offers: int
    n_providers: int
    first_day: str
    last_day: str
    n_undated: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bought:
    """A purchase price in the currency of the answer."""

    kind: str
    price: float
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class PriceLine:
    """The lowest price on demand of a class on each day it is known, in the currency of the answer."""

    provider_class: str
    points: list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class CardPrices:
    """All that is known of one card. ``ranked_as_of``: nothing newer is known than this day, and the ranking is of it.

    ``cheapest`` is on demand unless only spot is asked about; ``cheapest_spot`` stands apart.
    """

    gpu: str
    ranges: list[PriceRange]
    cheapest: list[Priced]
    ranked_as_of: str
    cheapest_spot: list[Priced]
    undated_low: Priced | None
    purchases: list[Bought]
    held_back: int
    history: list[PriceLine] = field(default_factory=list)
    borne: Borne | None = None


@dataclass(frozen=True, slots=True)
class PriceAnswer:
    """Prices of cards in one currency; ``rate``: units of it for one USD, by the central bank on ``rate_as_of``."""

    currency: str
    rate: float
    rate_as_of: str
    cards: list[CardPrices]
    offers: list[Priced]
    region: str = ""
    spot: bool | None = None
    not_priced: list[str] = field(default_factory=list)
    more_cards: int = 0
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked: cards by name of the table, a region, only spot (True), only on demand (False), or both.

    ``claim``: what somebody says that they cost.
    """

    gpus: tuple[str, ...] = ()
    region: str = ""
    spot: bool | None = None
    currency: str = "USD"
    among: frozenset[str] = frozenset(CLASSES)
    most: int = MOST_CARDS
    claim: Claim | None = None


def gpus_meant(text: str, offers: Sequence[Offer]) -> tuple[str, ...]:
    """Cards that a name means: each board of it that has a price, or the cards of a size. Raises EstimatorError."""
    priced = {offer.gpu for offer in offers}
    try:
        match = find_gpu(text)
    except EstimatorError:
        exact = next((card.name for card in cards() if card.name.casefold() == text.strip().casefold()), None)
        aliased = next(
            (card.name for card in cards() if text.strip().casefold() in map(str.casefold, card.aliases)), exact
        )
        if aliased is None:
            raise
        return (aliased,)
    names = tuple(dict.fromkeys((match.name, *match.candidates, *_other_boards(text, match.nominal_gb))))
    if match.name not in {card.name for card in cards()}:
        size = round(match.nominal_gb)
        names = tuple(card.name for card in cards() if size in card.nominal)
    return tuple(name for name in names if name in priced) or names[:1]


def _other_boards(text: str, nominal_gb: float) -> tuple[str, ...]:
    """Boards of the same name and memory where the text says neither PCIe nor SXM: an A100 40GB is sold as both."""
    series = _SIZE.sub("", text).strip()
    if series == text.strip() or not series or _BOARD.search(text):
        return ()
    try:
        named = find_gpu(series).candidates
    except EstimatorError:
        return ()
    sized = {card.name for card in cards() if round(nominal_gb) in card.nominal}
    return tuple(name for name in named if name in sized)


def prices(
    wanted: Wanted,
    offers: Sequence[Offer],
    now: datetime,
    rates: Rates | None = None,
    own: tuple[Purchase, ...] = (),
    lows: Mapping[str, Lows] | None = None,
) -> PriceAnswer:
    """The answer. ``lows``: for each card the lowest prices by class and day. Raises UnknownCurrency."""
    rates = rates or bundled_rates()
    rate = rates.rate(wanted.currency)
    shown = wanted.gpus[: wanted.most] if wanted.gpus else WATCH_LIST
    teller = Teller(rate, now)
    chosen = {gpu: [one for one in offers if one.gpu == gpu and _is_wanted(one, wanted)] for gpu in shown}
    found = [teller.card(gpu, chosen[gpu], own, (lows or {}).get(gpu, {})) for gpu in shown]
    if wanted.claim is not None:
        found = [replace(card, borne=_borne(wanted.claim, card)) for card in found]
    return PriceAnswer(
        currency=wanted.currency, rate=round(rate, 4), rate_as_of=rates.as_of,
        cards=[card for card in found if card.ranges or card.purchases],
        offers=[teller.offer(one) for gpu in shown for one in chosen[gpu] if one.quality != "quarantined"],
        region=wanted.region, spot=wanted.spot, not_priced=[card.gpu for card in found if not card.ranges],
        more_cards=max(0, len(wanted.gpus) - wanted.most), claim=wanted.claim,
    )  # fmt: skip


def _borne(claim: Claim, card: CardPrices) -> Borne:
    """A claim against what is asked on demand and by contract, or against what shops ask."""
    if claim.per == "buy":
        bought = [(number, one.price) for number, one in enumerate(card.purchases) if one.kind != "launch"]
        spread = [(number, price * (1 - SHOPS_DIFFER), price * (1 + SHOPS_DIFFER)) for number, price in bought]
        return borne_out(claim, spread)
    hours = HOURS[claim.per]
    asked = [(number, one) for number, one in enumerate(card.ranges) if not one.spot and one.provider_class != "index"]
    return borne_out(claim, ((number, one.low.price * hours, one.high.price * hours) for number, one in asked))


def _is_wanted(offer: Offer, wanted: Wanted) -> bool:
    kind = wanted.spot is None or offer.spot == wanted.spot
    return kind and offer.provider_class in wanted.among and in_region(offer, wanted.region)


class Teller:
    """Puts offers into the currency of the answer."""

    def __init__(self, rate: float, now: datetime) -> None:
        self._rate, self._now = rate, now

    def offer(self, one: Offer) -> Priced:
        """An offer as it is told."""
        price = one.usd_per_gpu_hour * self._rate
        return Priced(
            gpu=one.gpu, provider=one.provider, provider_class=one.provider_class, spot=one.spot, price=price,
            per_day=price * HOURS_PER_DAY, usd_per_gpu_hour=one.usd_per_gpu_hour, gpu_count=one.gpu_count,
            region=one.region if one.region not in ("*", "") else one.region_class, as_of=one.as_of,
            age=age_of(one, self._now), source=one.source, url=one.url, quality=one.quality, statistic=one.statistic,
            n_offers=one.n_offers,
        )  # fmt: skip

    def range(self, one: Range) -> PriceRange:
        """A range as it is told."""
        return PriceRange(
            provider_class=one.provider_class, spot=one.spot, low=self.offer(one.low), high=self.offer(one.high),
            median=None if one.median_usd is None else one.median_usd * self._rate, n_offers=one.n_offers,
            n_providers=one.n_providers, first_day=one.first_day, last_day=one.last_day, n_undated=one.n_undated,
            sources=one.sources,
        )  # fmt: skip

    def card(self, gpu: str, offers: list[Offer], own: tuple[Purchase, ...], lows: Lows) -> CardPrices:
        """All of a card."""
        on_demand = [one for one in offers if not one.spot]
        ranking, spot = ranked(on_demand, self._now), ranked([one for one in offers if one.spot], self._now)
        lowest = ranking.offers[0].usd_per_gpu_hour if ranking.offers else float("inf")
        undated = lowest_undated(on_demand, lowest)
        return CardPrices(
            gpu=gpu, ranges=[self.range(one) for one in ranges(offers)],
            cheapest=[self.offer(one) for one in ranking.offers], ranked_as_of=ranking.as_of or spot.as_of,
            cheapest_spot=[self.offer(one) for one in spot.offers[: MOST_SPOT if on_demand else None]],
            undated_low=self.offer(undated) if undated else None,
            purchases=[Bought(one.kind, one.usd * self._rate, one.as_of, one.source) for one in purchases_of(gpu, own)],
            held_back=sum(one.quality == "quarantined" for one in offers),
            history=[
                PriceLine(name, [(day, usd * self._rate) for day, usd in points]) for name, points in lows.items()
            ],
        )  # fmt: skip
