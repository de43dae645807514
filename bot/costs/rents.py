"""The price line of every answer with a card: apart, so that a question about memory loads nothing else of costs."""

from typing import Any

from bot.answer import RentShown
from bot.answers.quote import source_name
from bot.costs.market import ClassPrice, preferred, prices_of
from estimator.catalogue import find_gpu
from estimator.errors import EstimatorError
from estimator.schema import Run


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
