"""What a job costs to rent, as lines that add up."""

from bot.costs.market import ClassPrice
from bot.costs.rent import Rent, said_of
from estimator.architecture import Architecture
from estimator.cost.budget import Budget, Line, budget_of, buffer_share, defaults, total
from estimator.cost.interruptions import Checkpointing
from estimator.economics import Assumed, CostEstimate, CostLine, Economics, PricedOffer, Seconds, TimeEstimate, Usd
from estimator.inventory import inventory
from estimator.schema import Run

MILLION = 1e6
GB = 1e9


def bill(run: Run, arch: Architecture | None, time: TimeEstimate | None, rent: Rent) -> CostEstimate:
    """The lines and totals of a filled run at a price; ``time`` without an amount gives the price of tokens alone."""
    result = CostEstimate(usd_per_gpu_hour=rent.expected, assumptions=list(rent.said))
    if time is not None and time.tokens_per_second:
        result.usd_per_million_tokens = per_million(rent.expected, run.gpu_count or 1, time)
    if time is None or time.gpu_hours is None:
        return result
    plan = plan_of(run, arch, time.gpu_hours.expected, rent.provider_class)
    lines = budget_of(plan, rent.expected)
    result.lines = [_line(line) for line in lines]
    result.usd = _totals(run, arch, time.gpu_hours, rent, total(lines))
    if plan.buffer == 0:
        result.with_buffer_usd = total(lines) * (1 + buffer_share(run.gpu_count or 1))
    result.assumptions += _assumed(run, plan)
    return result


def per_million(usd_per_gpu_hour: float, gpu_count: int, time: TimeEstimate) -> float | None:
    """USD for a million tokens at full speed; with the whole job's time where that is known."""
    if time.tokens and time.gpu_hours:
        return usd_per_gpu_hour * time.gpu_hours.expected / time.tokens * MILLION
    speed = time.tokens_per_second
    return usd_per_gpu_hour * gpu_count / 3600 / speed * MILLION if speed else None


def plan_of(run: Run, arch: Architecture | None, gpu_hours: float, provider_class: str) -> Budget:
    """What is bought. Hours that the user gave are what is billed: nothing is added unless it was asked for."""
    said, known = said_of(run), said_of(run).hours is not None
    training = run.task in (None, "train")
    spot = defaults()["spot"]
    fast = Checkpointing(spot["write_hours"], spot["restart_hours"])
    return Budget(
        gpu_hours=gpu_hours * (said.attempts or 1),
        gpu_count=run.gpu_count or 1,
        storage_gb_months=_stored(said, run, arch, known or not training),
        egress_usd=(said.egress_gb or 0) * _egress_price(provider_class),
        idle=said.idle if said.idle is not None else training and not known,
        evaluation=said.evaluation if said.evaluation is not None else _evaluated(run) and not known,
        buffer=said.buffer if said.buffer is not None else 0.0 if known or not training else None,
        checkpointing=fast,
        hours_between=spot["hours_between_preemptions"] if said.spot else None,
        retries=training and not known,
    )


def job_offers(run: Run, time: TimeEstimate | None, arch: Architecture | None, prices: list[ClassPrice],
               fits: bool | None) -> list[PricedOffer]:  # fmt: skip
    """The least that each class asks, and the job at it."""
    return [_offer(run, time, arch, price, fits) for price in prices]


def _offer(
    run: Run, time: TimeEstimate | None, arch: Architecture | None, price: ClassPrice, fits: bool | None
) -> PricedOffer:
    cheapest, count = price.cheapest, run.gpu_count or 1
    used = time if cheapest.rentable else None
    hours = used.gpu_hours if used else None
    usd = None
    if hours is not None:
        plan = plan_of(run, arch, hours.expected, price.provider_class)
        usd = total(budget_of(plan, cheapest.usd_per_gpu_hour))
    return PricedOffer(
        gpu=price.gpu,
        provider_class=price.provider_class,
        provider=cheapest.provider,
        usd_per_gpu_hour=cheapest.usd_per_gpu_hour,
        as_of=cheapest.as_of,
        source=cheapest.source,
        usd_total=usd,
        fits=fits,
        gpu_count=count,
        spot=cheapest.spot,
        median=price.middle,
        range=(price.low, price.high),
        listings=price.listings,
        hours=hours.expected / count if hours else None,
        usd_per_million_tokens=per_million(cheapest.usd_per_gpu_hour, count, used) if used else None,
        current=price.current,
    )


def _totals(run: Run, arch: Architecture | None, hours: Seconds, rent: Rent, expected: float) -> Usd:
    low = total(budget_of(plan_of(run, arch, hours.low, rent.provider_class), rent.low))
    high = total(budget_of(plan_of(run, arch, hours.high, rent.provider_class), rent.high))
    return Usd(low=low, expected=expected, high=high)


def _line(line: Line) -> CostLine:
    return CostLine(item=line.item, usd=line.usd, why=line.why, why_zh=line.why_zh, assumed=line.assumed)


def _evaluated(run: Run) -> bool:
    return run.task in (None, "train") and run.stage not in ("grpo", "ppo")


def _stored(said: Economics, run: Run, arch: Architecture | None, nothing: bool) -> float:
    """GB-months: one checkpoint with its AdamW states, kept for a month."""
    if said.storage_gb_months is not None:
        return said.storage_gb_months
    if nothing or arch is None:
        return 0.0
    from estimator.cost.work import work_of

    work = work_of(run, arch, None)
    trained = work.adapters or (inventory(arch).numel if work.trained is None else work.trained)
    return float(trained * defaults()["storage"]["bytes_per_trained"] / GB)


def _egress_price(provider_class: str) -> float:
    prices = defaults()["egress"]
    return float(prices.get(provider_class, prices["other"]))


def _assumed(run: Run, plan: Budget) -> list[Assumed]:
    """What the lines beside the hours are based on."""
    if said_of(run).hours is not None:
        why = "hours as given: nothing is added for retries, idle time or evaluation"
        why_zh = "按给定时长计算，不另加重试、空闲与评测"
        return [Assumed(field="hours", value=said_of(run).hours, why=why, why_zh=why_zh, measured=True)]
    if plan.hours_between:
        why = "spot machines: taken away every 6 hours in the mean (assumption)"
        return [Assumed(field="spot", value=True, why=why, why_zh="竞价实例：平均每 6 小时被回收一次（假设）")]
    return []
