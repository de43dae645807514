"""Time and money laid beside an estimate."""

from bot.costs.bill import bill, job_offers
from bot.costs.market import ClassPrice, prices_of
from bot.costs.own import rent_or_buy
from bot.costs.ranking import ranked_cards
from bot.costs.rent import Rent, check_currency, rent_of, said_of
from bot.costs.times import given_time, slowest, time_on
from estimator.catalogue import GpuMatch, find_gpu, find_model
from estimator.cost.accelerators import accelerator_of
from estimator.cost.amounts import has_amount
from estimator.economics import CostEstimate, PricedOffer, TimeEstimate
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run

OF_OWNING = ("purchase_price", "utilisation", "years", "pue", "electricity_price")
"""Who says one of these asks what owning comes to."""


def wants_money(run: Run) -> bool:
    """Whether a run says anything about how much there is to do or what it may cost."""
    return has_amount(run) or run.price_usd_per_hour is not None or run.economics is not None


def with_costs(asked: Run, found: Estimate, ranks: bool = True) -> Estimate:
    """The estimate with its time and cost; raises ``EstimatorError`` for what cannot be true.

    ``ranks``: where no card is named, the cards that hold the run are ranked by the cost of the job.
    """
    complete = found.run
    if complete is None:
        return found
    check_currency(said_of(complete))
    arch, gpu = find_model(complete.model).architecture, slowest(complete)
    if gpu is None or gpu.kind == "class":
        return _without_card(asked, found, gpu) if ranks else found
    time, why = _timed(asked, found, gpu)
    found.time = time
    prices = [] if isinstance(complete.gpu, list) else prices_of(gpu, bool(said_of(complete).spot))
    rent = rent_of(complete, prices)
    if rent is None:
        found.cost = CostEstimate()
        found.cost.why, found.cost.why_zh = _no_price(gpu, said_of(complete).spot)
    else:
        found.cost = bill(complete, arch, time, rent)
    _explain(found.cost, time, why, asked)
    found.cost.offers = job_offers(complete, time, arch, prices, _fits(found))
    _owned(found.cost, complete, gpu, prices, rent)
    return found


def of_card(fields: dict[str, object], name: str) -> Estimate:
    """Prices and the comparison with owning for a card alone, where no model is named. Raises ``EstimatorError``."""
    gpu = find_gpu(name)
    run = Run.model_validate({**fields, "model": "none", "gpu": name})
    check_currency(said_of(run))
    prices = prices_of(gpu, bool(said_of(run).spot))
    rent = rent_of(run, prices)
    cost = CostEstimate(usd_per_gpu_hour=rent.expected if rent else None, assumptions=list(rent.said) if rent else [])
    if rent is None:
        cost.why, cost.why_zh = _no_price(gpu, said_of(run).spot)
    stated, count = said_of(run).hours, run.gpu_count or 1
    time = given_time(stated, count) if stated else None
    if rent is not None and time is not None:
        cost = bill(run, None, time, rent)
    cost.offers = job_offers(run, time, None, prices, None)
    _owned(cost, run, gpu, prices, rent)
    return Estimate(time=time, cost=cost)


def _without_card(asked: Run, found: Estimate, size: GpuMatch | None) -> Estimate:
    """No card is named, or only its size: those that hold the run, by what the job costs on them."""
    ranking = ranked_cards(asked, size.nominal_gb if size else None)
    offers = ranking.offers
    found.cost = CostEstimate(offers=offers, not_ranked=ranking.rest, ranked_as_of=ranking.as_of)
    if not offers and not ranking.rest:
        found.cost.why, found.cost.why_zh = "no card with a known price holds this", "没有已知价格的显卡能放下这个任务"
    if said_of(asked).rent_or_buy:
        _owned_best(found.cost, asked, offers)
    return found


def _owned_best(cost: CostEstimate, asked: Run, offers: list[PricedOffer]) -> None:
    """Owning the cheapest card that holds the run, of those whose purchase price is known."""
    for offer in offers:
        gpu = find_gpu(offer.gpu)
        run, prices = asked.model_copy(update={"gpu": offer.gpu}), prices_of(gpu)
        _owned(cost, run, gpu, prices, rent_of(run, prices))
        if cost.rent_or_buy is not None:
            cost.why = cost.why_zh = ""
            return


def _timed(asked: Run, found: Estimate, gpu: GpuMatch) -> tuple[TimeEstimate | None, EstimatorError | None]:
    """The time, or why there is none; what the user gave wrong is raised."""
    assert found.run is not None
    try:
        arch = find_model(found.run.model).architecture
        return time_on(asked, found.run, arch, gpu, found), None
    except EstimatorError as error:
        if str(error.field).startswith("economics"):
            raise
        return None, error


def _explain(cost: CostEstimate, time: TimeEstimate | None, why: EstimatorError | None, asked: Run) -> None:
    """Why there is no total, in one sentence."""
    if cost.usd is not None or cost.why:
        return
    if why is not None:
        cost.why, cost.why_zh = why.message, why.message_zh
    elif time is None or time.seconds is None:
        cost.why = "no amount is given: say tokens, or samples and epochs, for a total"
        cost.why_zh = "没有给出数据量：请写明 token 数，或样本数与轮数"


def _owned(cost: CostEstimate, run: Run, gpu: GpuMatch, prices: list[ClassPrice], rent: Rent | None) -> None:
    """Owning beside renting, where that was asked."""
    said = said_of(run)
    wanted = said.rent_or_buy or any(getattr(said, name) is not None for name in OF_OWNING)
    card = accelerator_of(gpu)
    if not wanted or card is None:
        return
    price, name = (rent.expected, rent.provider_class) if rent else (None, "")
    cost.rent_or_buy, assumed = rent_or_buy(run, card, prices, price, name)
    cost.assumptions += [one for one in assumed if one not in cost.assumptions]
    if cost.rent_or_buy is None:
        why = f"no purchase price of {card.name} is known; give one with economics.purchase_price"
        cost.why, cost.why_zh = why, f"没有 {card.name} 的购置价；请用 economics.purchase_price 给出"


def _fits(found: Estimate) -> bool | None:
    return None if found.fit.verdict is None else found.fit.verdict == "fits"


def _no_price(gpu: GpuMatch, spot: bool | None = None) -> tuple[str, str]:
    if spot:
        return (
            f"no spot price of {gpu.name} is known; ask for its price on demand, or give yours",
            f"没有 {gpu.name} 的竞价（抢占式）价格；可以改问按需价格，或给出您的价格",
        )
    return (
        f"no rental price of {gpu.name} is known; give yours (price_usd_per_hour) for the cost",
        f"没有 {gpu.name} 的租用价格；请给出您的价格（price_usd_per_hour）",
    )
