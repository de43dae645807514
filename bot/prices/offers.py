"""An offer of a GPU, always per GPU and hour, and the offers known for a card."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Literal, NamedTuple

from bot.prices.regions import GLOBAL, TOKENS, region_class, wanted_classes

ProviderClass = Literal[
    "hyperscaler", "neocloud", "marketplace", "broker", "hyperscaler-cn", "marketplace-cn", "lease-cn", "index", "own"
]
CLASSES: tuple[ProviderClass, ...] = (
    "hyperscaler", "neocloud", "marketplace", "broker", "hyperscaler-cn", "marketplace-cn", "own", "lease-cn", "index",
)  # fmt: skip
"""In the order in which they are told; prices of two classes are never pooled."""

NOT_BY_THE_HOUR = frozenset({"lease-cn", "index"})
"""Classes that nobody can rent by the hour: contracts over months, and blends of others' prices."""

NAMED = frozenset({*TOKENS, "CN"})
"""Parts of the world by their names; some sources give a country instead."""

Quality = Literal["ok", "suspect", "quarantined"]


class Offer(NamedTuple):
    """One price: USD per GPU and hour, whole hosts divided by their GPUs, CPU and RAM of the host included.

    ``as_of`` is the day the price was seen, as far as it is known: "2026-07-20", a year, or empty. ``native_price`` is
    per GPU and hour in ``currency`` as the source has it. ``statistic`` and ``n_offers``: how many listings the price
    stands for, and which of them it is. ``quality`` and ``reason``: what checks found. ``embedded``: of the snapshot
    that ships with the bot. ``seen_at``: when a source confirmed the price last. ``valid_until``: the last day of a
    contract.
    """

    gpu: str
    provider: str
    provider_class: ProviderClass
    instance: str
    gpu_count: int
    region: str
    region_class: str
    spot: bool
    usd_per_gpu_hour: float
    native_price: float
    currency: str
    as_of: str
    source: str
    url: str = ""
    note: str = ""
    statistic: str = "listed"
    n_offers: int = 1
    quality: Quality = "ok"
    reason: str = ""
    embedded: bool = False
    seen_at: datetime | None = None
    valid_until: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, int, bool]:
        """What stays the same while the price changes."""
        return self.provider, self.instance, self.region, self.gpu, self.gpu_count, self.spot

    @property
    def day(self) -> date | None:
        """The day of the price; None where no exact day is known."""
        try:
            return date.fromisoformat(self.as_of)
        except ValueError:
            return None

    @property
    def rentable(self) -> bool:
        """Whether anyone can rent at this price by the hour."""
        return self.provider_class not in NOT_BY_THE_HOUR and self.quality != "quarantined"

    @property
    def may_be_cheapest(self) -> bool:
        """Whether the offer can be named as the cheapest: by the hour, and with a day to it."""
        return self.rentable and self.day is not None


def offers_for(
    gpu: str, *, spot: bool | None = None, region: str | None = None, among: Sequence[Offer] | None = None
) -> list[Offer]:
    """What is known of a card (a name of the card table, such as "RTX 4090"), the cheapest first.

    ``spot`` None gives both kinds; ``region`` is a region or a class of regions ("US", "Europe", "CN"). What was
    quarantined is left out. ``among`` None asks for what is known now.
    """
    if among is None:
        from bot.prices.current import current_offers

        among = current_offers()
    found = (offer for offer in among if offer.gpu == gpu and offer.quality != "quarantined")
    wanted = (offer for offer in found if spot is None or offer.spot == spot)
    return sorted((one for one in wanted if in_region(one, region)), key=lambda offer: offer.usd_per_gpu_hour)


def in_region(offer: Offer, region: str | None) -> bool:
    """Whether an offer is of a region, a part of the world, or of all of it."""
    if not region:
        return True
    if region.strip().casefold() == offer.region.casefold():
        return True
    parts = wanted_classes(region)
    own = offer.region_class if offer.region_class in NAMED else region_class(offer.region_class)
    return own in parts or offer.region_class == GLOBAL
