"""The least count of the cards asked about that surely holds a run: what "how many cards" asks for."""

from functools import cache
from typing import NamedTuple

from estimator.catalogue import find_model
from estimator.downgrades.figures import figures
from estimator.downgrades.hardware import cards, most_cards, tensor_parallel
from estimator.downgrades.mildest import mildest
from estimator.errors import EstimatorError
from estimator.estimate import around_of, card_of, outcome_of, refilled
from estimator.schema import Run


class Fewest(NamedTuple):
    """The run spread out, its peak on the fullest card (bytes), and how it is spread in both languages.

    ``run`` is None where not even ``gpu_count`` cards hold it.
    """

    gpu_count: int
    run: Run | None = None
    peak: int = 0
    way: str = ""
    way_zh: str = ""


def fewest_cards(asked: Run) -> Fewest | None:
    """The least count; None without one kind of card, or where a count was given.

    FSDP, ZeRO and layers dealt out take any count, tensor parallel one that divides the heads. Raises EstimatorError.
    """
    gpu = card_of(asked)
    if gpu is None or asked.gpu_count or isinstance(asked.gpu, list) or gpu.count > 1:
        return None
    model = find_model(asked.model)
    around, start = around_of(model, gpu), refilled(asked, model)
    spread = cards(start, around) or tensor_parallel(start, around)
    runs = cache(lambda place: spread[place - 1] if place else start)
    measured = cache(lambda place: outcome_of(runs(place), model))
    alone, most = ((one := measured(place)) is not None and one.fits for place in (0, len(spread)))
    if not (alone or most):
        return Fewest(runs(len(spread)).gpu_count or most_cards(gpu))
    place = 0 if alone else mildest(len(spread) + 1, lambda place: (runs(place), measured(place)))
    run, outcome = runs(place), measured(place)
    told = figures(run) if place else {"sharding": "", "sharding_zh": ""}
    return Fewest(run.gpu_count or 1, run, outcome.allocated if outcome else 0, told["sharding"], told["sharding_zh"])


def fewest_or_none(asked: Run) -> Fewest | None:
    """The least count; None too where the run cannot be estimated."""
    try:
        return fewest_cards(asked)
    except EstimatorError:
        return None
