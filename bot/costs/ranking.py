"""Cards ranked by what the job costs on them, among those that hold it, with what must be changed first on others."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from bot.costs.bill import job_offers
from bot.costs.market import ClassPrice, class_prices
from bot.costs.rent import said_of
from bot.costs.times import time_on
from bot.prices.current import current_offers
from bot.prices.offers import NOT_BY_THE_HOUR, Offer
from estimator.catalogue import GpuMatch, ModelMatch, find_gpu, find_model
from estimator.cost.accelerators import accelerator_of
from estimator.downgrades import hardware
from estimator.downgrades.mildest import least
from estimator.economics import PricedOffer, TimeEstimate
from estimator.errors import EstimatorError
from estimator.estimate import around_of, completed, estimate, outcome_of, with_format
from estimator.plan import plan_on_card
from estimator.schema import Run

MOST_CARDS, MOST_BESIDE = 8, 4
"""Cards that are told with a rank, and those without beside them."""
MOST_TOGETHER = 8
"""Cards of one kind that a job is spread over, at most."""
MOST_PLANS = 3
"""Cheaper cards for which the changes are searched that make the job fit."""
WITHOUT_TORCH = ("npu", "tpu")
"""Kinds whose memory another software lays out than the one that is estimated."""


class Candidate(NamedTuple):
    """A card with the run on it, how long that takes, and the offers of each class."""

    run: Run
    time: TimeEstimate
    offers: list[PricedOffer]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The cheapest offer of each card, by what the job costs, or a million tokens, or an hour.

    ``as_of``: the newest day of ``offers`` where none of today's sources speaks of a card. ``rest``: cards that hold
    the job and have no rank: their prices have no day, or are too old beside those of today.
    """

    offers: list[PricedOffer]
    rest: list[PricedOffer]
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class _Priced:
    """A card with its prices by the hour."""

    name: str
    gpu: GpuMatch
    prices: list[ClassPrice]


def ranked_cards(
    asked: Run, size_gb: float | None = None, among: Sequence[Offer] | None = None, now: datetime | None = None
) -> Ranking:
    """The cards that hold a job, the cheapest first.

    ``size_gb`` keeps to cards of that size. Cards that would be cheaper and hold it only after changes carry the titles
    of these changes. ``among`` None: what is known now.
    """
    model, bare = find_model(asked.model), asked.model_copy(update={"gpu": None})
    found: list[PricedOffer] = []
    short: list[_Priced] = []
    offers, spot = current_offers() if among is None else among, bool(said_of(asked).spot)
    for card in _cards(size_gb, spot, offers, now or datetime.now(UTC)):
        run = _holding(bare, card, model)
        candidate = _candidate(run, asked, card, model) if run else None
        if candidate:
            found += _best(candidate.offers)
        if run is None or (run.gpu_count or 1) > (asked.gpu_count or 1):
            short.append(card)
    return _ranking([*found, *_planned(bare, asked, short, model, _bound(found))])


def _ranking(found: list[PricedOffer]) -> Ranking:
    """Those of today's sources, else all with a day; a price without one is never said to be the cheapest."""
    best = sorted(found, key=_cost)
    today = any(one.current for one in best)
    able = [one.current if today else one.has_day for one in best]
    chosen = [one for one, may in zip(best, able, strict=True) if may][:MOST_CARDS]
    rest = [one for one, may in zip(best, able, strict=True) if not may]
    least = _cost(chosen[0]) if chosen else float("inf")
    named = {one.gpu for one in chosen}
    beside = [one for one in rest if _cost(one) < least or one.gpu not in named]
    as_of = "" if today or not chosen else max(one.as_of for one in chosen)
    return Ranking(chosen, beside[:MOST_BESIDE], as_of)


def _bound(found: list[PricedOffer]) -> float:
    """What the cheapest card that holds the job as it is costs, of those that may be named so."""
    ranking = _ranking(found)
    return min(map(_cost, ranking.offers or ranking.rest), default=float("inf"))


def _cards(size_gb: float | None, spot: bool, offers: Sequence[Offer], now: datetime) -> list[_Priced]:
    """Cards whose speed is known and that can be rented by the hour."""
    found = []
    for name in dict.fromkeys(offer.gpu for offer in offers):
        gpu = _known(name)
        if gpu is None or size_gb not in (None, gpu.nominal_gb):
            continue
        prices = [one for one in class_prices(name, spot, offers, now) if one.provider_class not in NOT_BY_THE_HOUR]
        found += [_Priced(name, gpu, prices)] if prices else []
    return found


def _known(name: str) -> GpuMatch | None:
    try:
        gpu = find_gpu(name)
    except EstimatorError:
        return None
    card = accelerator_of(gpu)
    return gpu if card is not None and card.kind not in WITHOUT_TORCH else None


def _holding(asked: Run, card: _Priced, model: ModelMatch) -> Run | None:
    """The run on the fewest of these cards that surely hold it; None where eight do not."""
    run, gpu = asked.model_copy(update={"gpu": card.name}), card.gpu
    try:
        complete = completed(with_format(run, model), model, gpu)[0]
        first = outcome_of(complete, model)
        if first is not None and first.fits:
            return run
        least_of_all = first.allocated if first else 0
        at_best = -(-least_of_all // gpu.usable_high)  # everything is divided
        wider = _spread(run, complete, model, gpu, at_best)
        return least(wider, lambda more: outcome_of(completed(with_format(more, model), model, gpu)[0], model))
    except EstimatorError:
        return None


def _spread(run: Run, complete: Run, model: ModelMatch, gpu: GpuMatch, at_least: int) -> Sequence[Run]:
    """The run over more cards of the kind, so many or more, as the moves to other hardware spread it."""
    if run.gpu_count:
        return ()
    around = around_of(model, gpu)
    grades = hardware.cards(complete, around)[max(at_least - 2, 0) : MOST_TOGETHER - 1]  # two cards are the first
    if not grades:
        dealt = hardware.tensor_parallel(complete, around)
        grades = [one for one in dealt if at_least <= (one.gpu_count or 1) <= MOST_TOGETHER]
    fields = ("gpu_count", "parallel", "micro_batch", "grad_accum")
    return hardware.Lazily(
        range(len(grades)), lambda place: run.model_copy(update={name: getattr(grades[place], name) for name in fields})
    )


def _candidate(run: Run, asked: Run, card: _Priced, model: ModelMatch) -> Candidate | None:
    try:
        complete = completed(with_format(run, model), model, card.gpu)[0]
        served = estimate(run) if complete.task in ("infer", "serve") else None
        time = time_on(run, complete, model.architecture, card.gpu, served)
    except EstimatorError:
        return None
    return Candidate(complete, time, job_offers(complete, time, model.architecture, card.prices, True))


def _best(offers: list[PricedOffer]) -> list[PricedOffer]:
    """The least of a card that may be ranked, and the least without a day where that is less."""
    standing = [one for one in offers if one.current] or [one for one in offers if one.has_day]
    first = min(standing, key=_cost, default=None)
    undated = min((one for one in offers if not one.has_day), key=_cost, default=None)
    if first is None or (undated is not None and _cost(undated) < _cost(first)):
        return [one for one in (first, undated) if one]
    return [first]


def _cost(offer: PricedOffer) -> float:
    """What cards are ranked by: the job, else a million tokens, else the hour."""
    if offer.usd_total is not None:
        return offer.usd_total
    return offer.usd_per_million_tokens or offer.usd_per_gpu_hour * offer.gpu_count


def _planned(bare: Run, asked: Run, short: list[_Priced], model: ModelMatch, bound: float) -> list[PricedOffer]:
    """Cards that hold the job only after changes and then cost less than the cheapest that holds it as it is."""
    planned: list[PricedOffer] = []
    for card in sorted(short, key=_by_the_hour)[: 2 * MOST_PLANS]:
        if len({one.gpu for one in planned}) == MOST_PLANS:
            break
        plan = plan_on_card(bare.model_copy(update={"gpu": card.name}))
        candidate = _candidate(plan.run, asked, card, model) if plan and plan.run else None
        if plan is None or candidate is None:
            continue
        steps, steps_zh = ([getattr(step, name) for step in plan.chain] for name in ("title", "title_zh"))
        planned += [
            best.model_copy(update={"fits": False, "steps": steps, "steps_zh": steps_zh})
            for best in _best(candidate.offers)
            if _cost(best) < bound
        ]
    return planned


def _by_the_hour(card: _Priced) -> tuple[bool, float]:
    """Cards whose price has a day come first: others have no rank, whatever they cost."""
    dated = [price.cheapest.usd_per_gpu_hour for price in card.prices if price.cheapest.day]
    return not dated, min(dated or [price.low for price in card.prices])
