"""Cards ranked by what the job costs on them, among those that hold it, with what must be changed first on others."""

from typing import NamedTuple

from bot.costs.bill import job_offers
from bot.costs.market import class_prices
from bot.costs.times import time_on
from bot.prices.current import current_offers
from estimator.catalogue import GpuMatch, ModelMatch, find_gpu, find_model
from estimator.cost.accelerators import accelerator_of
from estimator.downgrades import hardware
from estimator.economics import PricedOffer, TimeEstimate
from estimator.errors import EstimatorError
from estimator.estimate import around_of, completed, estimate, outcome_of, with_format
from estimator.schema import Estimate, Run

MOST_CARDS = 8
MOST_TOGETHER = 8
"""Cards of one kind that a job is spread over, at most."""
MOST_PLANS = 3
"""Cheaper cards for which the changes are searched that make the job fit."""
BY_THE_HOUR = frozenset({"lease-cn", "index"})


class Candidate(NamedTuple):
    """A card with the run on it, how long that takes, and the offers of each class."""

    run: Run
    time: TimeEstimate
    offers: list[PricedOffer]


def ranked_cards(asked: Run, size_gb: float | None = None) -> list[PricedOffer]:
    """The cheapest offer for each card that holds the job, by what the job costs, or a million tokens, or an hour.

    ``size_gb`` keeps to cards of that size. Cards that would be cheaper and hold it only after changes carry the titles
    of these changes.
    """
    model, bare = find_model(asked.model), asked.model_copy(update={"gpu": None})
    found, short = [], []
    for name in dict.fromkeys(offer.gpu for offer in current_offers()):
        gpu = _known(name)
        if gpu is None or size_gb not in (None, gpu.nominal_gb):
            continue
        run = _holding(bare, name, gpu, model)
        candidate = _candidate(run, asked, gpu, model) if run else None
        if candidate:
            found.append(_best(candidate.offers))
        elif run is None:
            short.append((name, gpu))
    found = sorted(found, key=_cost)
    bound = _cost(found[0]) if found else float("inf")
    planned = _planned(bare, asked, short, model, bound)
    return sorted([*planned, *found[: MOST_CARDS - len(planned)]], key=_cost)


def _known(name: str) -> GpuMatch | None:
    try:
        gpu = find_gpu(name)
    except EstimatorError:
        return None
    return gpu if accelerator_of(gpu) is not None and _priced(name) else None


def _priced(name: str) -> bool:
    return any(price.provider_class not in BY_THE_HOUR for price in class_prices(name))


def _holding(asked: Run, name: str, gpu: GpuMatch, model: ModelMatch) -> Run | None:
    """The run on the fewest of these cards that surely hold it; None where eight do not."""
    run = asked.model_copy(update={"gpu": name})
    try:
        complete = completed(with_format(run, model), model, gpu)[0]
        first = outcome_of(complete, model)
        if first is not None and first.fits:
            return run
        for more in _spread(run, complete, model, gpu):
            wide = completed(with_format(more, model), model, gpu)[0]
            outcome = outcome_of(wide, model)
            if outcome is not None and outcome.fits:
                return more
    except EstimatorError:
        return None
    return None


def _spread(run: Run, complete: Run, model: ModelMatch, gpu: GpuMatch) -> list[Run]:
    """The run over more cards of the kind, as the moves to other hardware spread it."""
    if run.gpu_count:
        return []
    grades = hardware.cards(complete, around_of(model, gpu))
    wider = [one for one in grades if (one.gpu_count or 1) <= MOST_TOGETHER]
    fields = ("gpu_count", "parallel", "micro_batch", "grad_accum")
    return [run.model_copy(update={name: getattr(one, name) for name in fields}) for one in wider]


def _candidate(run: Run, asked: Run, gpu: GpuMatch, model: ModelMatch) -> Candidate | None:
    try:
        complete = completed(with_format(run, model), model, gpu)[0]
        served = estimate(run) if complete.task in ("infer", "serve") else None
        time = time_on(run, complete, model.architecture, gpu, served)
    except EstimatorError:
        return None
    prices = [price for price in class_prices(str(run.gpu)) if price.provider_class not in BY_THE_HOUR]
    offers = job_offers(complete, time, model.architecture, prices, True)
    return Candidate(complete, time, offers) if offers else None


def _best(offers: list[PricedOffer]) -> PricedOffer:
    return min(offers, key=_cost)


def _cost(offer: PricedOffer) -> float:
    """What cards are ranked by: the job, else a million tokens, else the hour."""
    if offer.usd_total is not None:
        return offer.usd_total
    return offer.usd_per_million_tokens or offer.usd_per_gpu_hour * offer.gpu_count


def _planned(
    bare: Run, asked: Run, short: list[tuple[str, GpuMatch]], model: ModelMatch, bound: float
) -> list[PricedOffer]:
    """Cards that hold the job only after changes and then cost less than the cheapest that holds it as it is."""
    cheap = sorted(short, key=lambda one: min(price.low for price in class_prices(one[0])))
    planned: list[PricedOffer] = []
    for name, gpu in cheap[: 2 * MOST_PLANS]:
        if len(planned) == MOST_PLANS:
            break
        found = _with_plan(bare.model_copy(update={"gpu": name}))
        candidate = _candidate(found.plan.run, asked, gpu, model) if found and found.plan and found.plan.run else None
        if found is None or found.plan is None or candidate is None:
            continue
        best = _best(candidate.offers)
        if _cost(best) < bound:
            best.fits = False
            best.steps = [step.title for step in found.plan.chain]
            best.steps_zh = [step.title_zh for step in found.plan.chain]
            planned.append(best)
    return planned


def _with_plan(run: Run) -> Estimate | None:
    """The estimate with the cheapest chain of changes, unless that needs other cards."""
    try:
        found = estimate(run)
    except EstimatorError:
        return None
    bought = found.plan is not None and any(step.money_cost != "none" for step in found.plan.chain)
    return None if found.plan is None or bought else found
