"""What a question about time or money needs beside the memory, and the price line of every answer with a card."""

from typing import Any

from bot.answer import RentShown
from bot.answers.quote import source_name
from bot.costs.costing import of_card, wants_money, with_costs
from bot.costs.market import ClassPrice, preferred, prices_of
from estimator.catalogue import find_gpu
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run

ABOUT_MONEY = ("time", "cost", "price")
FACTS = ("params_b", "memory_gb", "resolved_model", "hours", "model", "gpu", "task", "method")
"""What a run without a model carries beside what may be said of money."""


def spelled_out(question: str, fields: dict[str, Any], lang: str) -> dict[str, Any]:
    """The run with what the question says of money in its place: hours that were billed, the country of the reader."""
    said = dict(fields.get("economics") or {})
    if fields.get("hours") and question in ("cost", "price"):
        said.setdefault("hours", fields["hours"])
    if lang == "zh" and question in ABOUT_MONEY:
        said.setdefault("country", "cn")
    return {**fields, "economics": said} if said else fields


def beside(question: str, asked: Run, found: Estimate) -> Estimate:
    """The estimate with time and cost where the question, or the run itself, asks for them."""
    ranks = question in ABOUT_MONEY or (question == "need_gpu" and asked.gpu is None)
    return with_costs(asked, found, ranks) if ranks or wants_money(asked) else found


def without_model(fields: dict[str, Any]) -> Estimate:
    """Prices of a card alone. Raises ``EstimatorError``."""
    kept = {name: value for name, value in fields.items() if name not in FACTS}
    return of_card(kept, str(fields["gpu"]))


def rent_shown(run: Run | None) -> RentShown | None:
    """The usual class's prices of the run's card, and a dated one where that has no day; None where none is known."""
    if run is None or not isinstance(run.gpu, str):
        return None
    try:
        prices = prices_of(find_gpu(run.gpu))
    except EstimatorError:
        return None
    first = preferred(prices)
    if first is None:
        return None
    dated = [
        price for price in prices if price.cheapest.may_be_cheapest and price.provider_class != first.provider_class
    ]
    second = min(dated, key=lambda price: price.middle, default=None) if not first.as_of else None
    return RentShown(gpu=first.gpu, classes=[_shown(price) for price in (first, second) if price])


def _shown(price: ClassPrice) -> dict[str, Any]:
    return {
        "provider_class": price.provider_class,
        "low": round(price.low, 2),
        "high": round(price.high, 2),
        "as_of": price.as_of,
        "source": source_name(price.cheapest.source),
    }
