"""The cheapest cards that hold a saved workload: price per hour, and per million tokens trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from bot import service
from bot.intake.understand import understand
from bot.prices.offers import NOT_BY_THE_HOUR, Offer
from bot.prices.ranking import ranked
from estimator.cost.accelerators import accelerators
from estimator.cost.speed import Job, timing
from estimator.cost.work import Work, flops_per_token
from estimator.errors import EstimatorError
from estimator.schema import Estimate

MOST_SHOWN = 3
MILLION = 1e6
SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class FittingCard:
    """A card that holds the workload: price per GPU and hour, and of a million tokens where the speed is known."""

    gpu: str
    provider: str
    price: float
    per_million: float | None
    as_of: str


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """A workload with the cheapest cards that hold it; ``problem`` where it cannot be estimated."""

    text: str
    model: str
    cards: list[FittingCard]
    problem: str = ""


def workload_cost(text: str, offers: Sequence[Offer], now: datetime, rate: float, lang: str) -> WorkloadCost:
    """The three cheapest cards by the hour that hold a workload, ``rate`` units of the currency for one USD."""
    try:
        verdicts = _speeds(text, _candidates(tuple(sorted({offer.gpu for offer in offers}))))
    except EstimatorError as error:
        return WorkloadCost(text, "", [], error.message_zh if lang == "zh" else error.message)
    found = [card for gpu, speed in verdicts.cards if (card := _card(gpu, speed, offers, now, rate))]
    return WorkloadCost(text, verdicts.model, sorted(found, key=lambda card: card.price)[:MOST_SHOWN])


@dataclass(frozen=True, slots=True)
class _Verdicts:
    model: str
    cards: tuple[tuple[str, float | None], ...]


def _candidates(gpus: tuple[str, ...]) -> tuple[str, ...]:
    known = accelerators()
    return tuple(gpu for gpu in gpus if gpu in known and known[gpu].kind not in ("tpu", "npu"))


@lru_cache(maxsize=256)
def _speeds(text: str, gpus: tuple[str, ...]) -> _Verdicts:
    """Cards that hold the workload, with tokens per second; the same for every channel and day."""
    runs = understand(text).runs
    if not runs:
        raise EstimatorError(f"no run is understood in {text!r}", f"看不懂 {text!r}", "model")
    cards: list[tuple[str, float | None]] = []
    model = ""
    for gpu in gpus:
        fields = {name: value for name, value in runs[0].items() if name not in ("gpu", "memory_gb", "gpu_count")}
        try:
            found = service.estimate(service.run_of({**fields, "gpu": gpu}))
        except EstimatorError as error:
            if error.field == "gpu":
                continue
            raise
        model = str(runs[0].get("resolved_model") or runs[0]["model"])
        if found.fit.verdict == "fits":
            cards.append((gpu, _tokens_per_second(found, gpu)))
    return _Verdicts(model, tuple(cards))


def _tokens_per_second(found: Estimate, gpu: str) -> float | None:
    """Tokens trained a second on one card; None where the speed of the card or the work is not known."""
    run, params = found.run, _parameters(found)
    if run is None or run.task != "train" or params is None:
        return None
    adapter = run.method in ("lora", "dora", "qlora")
    work = Work(params, 0.0, trained=0 if adapter else None, recompute=run.gradient_checkpointing not in (None, "none"))
    length = run.seq_len if isinstance(run.seq_len, int) else 1024
    job = Job(work, MILLION, seq_len=length, micro_batch=run.micro_batch or 1, adapter=adapter,
              quantised=run.method == "qlora")  # fmt: skip
    try:
        assert flops_per_token(work) > 0
        return timing(job, accelerators()[gpu]).tokens_per_second
    except EstimatorError:
        return None


def _parameters(found: Estimate) -> int | None:
    from estimator.catalogue import find_model
    from estimator.inventory import active_parameters

    try:
        return active_parameters(find_model(found.run.model).architecture) if found.run else None
    except EstimatorError:
        return None


def _card(gpu: str, speed: float | None, offers: Sequence[Offer], now: datetime, rate: float) -> FittingCard | None:
    group = [one for one in offers if one.gpu == gpu and not one.spot and one.provider_class not in NOT_BY_THE_HOUR]
    best = ranked(group, now, 1).offers
    if not best:
        return None
    price = best[0].usd_per_gpu_hour * rate
    per_million = price / SECONDS_PER_HOUR / speed * MILLION if speed else None
    return FittingCard(gpu, best[0].provider, price, per_million, best[0].as_of)
