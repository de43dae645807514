"""The cheapest cards that hold a saved workload, as a question for the card would rank them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot import service
from bot.costs.ranking import ranked_cards
from bot.intake.understand import understand
from bot.prices.offers import Offer
from bot.texts import say
from estimator.economics import PricedOffer
from estimator.errors import EstimatorError

MOST_SHOWN = 3
NOT_ASKED = frozenset({"gpu", "memory_gb"})
"""A workload says what is run; on which card is what the post tells."""


@dataclass(frozen=True, slots=True)
class FittingCard:
    """A card that holds the workload: price per GPU and hour, and of a million tokens over all its cards.

    ``steps`` must be changed first.
    """

    gpu: str
    gpu_count: int
    provider: str
    provider_class: str
    price: float
    per_million: float | None
    as_of: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """A workload with the cheapest cards that hold it; ``problem`` where it cannot be estimated.

    ``as_of``: the newest day of their prices where none of today's sources speaks of a card.
    """

    text: str
    model: str
    cards: list[FittingCard]
    problem: str = ""
    as_of: str = ""


def workload_cost(text: str, offers: Sequence[Offer], now: datetime, rate: float, lang: str) -> WorkloadCost:
    """The three cheapest cards that hold a workload, by a million tokens; ``rate`` units of the currency for one USD.

    Prices without a day are left out: they have no rank.
    """
    runs = understand(text).runs
    if not runs:
        return WorkloadCost(text, "", [], say(lang, "digest.bad_workload", text=text))
    fields = {name: value for name, value in runs[0].items() if name not in NOT_ASKED}
    model = str(fields.get("resolved_model") or fields["model"])
    try:
        ranking = ranked_cards(service.run_of(fields), None, offers, now)
    except EstimatorError as error:
        return WorkloadCost(text, model, [], error.message_zh if lang == "zh" else error.message)
    cards = [_card(offer, rate, lang) for offer in ranking.offers[:MOST_SHOWN]]
    return WorkloadCost(text, model, cards, as_of=ranking.as_of)


def _card(offer: PricedOffer, rate: float, lang: str) -> FittingCard:
    per_million = offer.usd_per_million_tokens
    return FittingCard(
        gpu=offer.gpu, gpu_count=offer.gpu_count, provider=offer.provider, provider_class=offer.provider_class,
        price=offer.usd_per_gpu_hour * rate, per_million=per_million * rate if per_million else None,
        as_of=offer.as_of, steps=tuple(offer.steps_zh if lang == "zh" else offer.steps),
    )  # fmt: skip
