"""What a rented run costs, as lines that add up: hours, retries, idle time, evaluation, storage, egress, buffer."""

from dataclasses import dataclass
from typing import Any

from estimator.cost.interruptions import FAST, Checkpointing, chance_of_failure, waste
from estimator.cost.tables import table_of
from estimator.errors import EstimatorError

WORTH_TELLING = 1.0
"""Per cent of a chance from which on a bill names it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill in USD, with its reason; ``assumed``: no source stands behind the share."""

    item: str
    usd: float
    why: str
    why_zh: str
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What is bought: card-hours on ``gpu_count`` cards, and what comes with it. Shares are fractions.

    ``buffer`` None takes the default for the number of cards; ``hours_between`` preemptions: the machines are spot.
    """

    gpu_hours: float
    gpu_count: int = 1
    storage_gb_months: float = 0.0
    egress_usd: float = 0.0
    idle: bool = True
    evaluation: bool = False
    buffer: float | None = None
    checkpointing: Checkpointing = FAST
    hours_between: float | None = None
    retries: bool = True


def defaults() -> dict[str, Any]:
    """Shares and prices of what comes beside the hours, with their sources."""
    return table_of("run")


def budget_of(plan: Budget, usd_per_gpu_hour: float) -> list[Line]:
    """The lines of a run at a price; their sum is the budget. Raises ``EstimatorError`` for a negative amount."""
    _checked(plan, usd_per_gpu_hour)
    hours = plan.gpu_hours * usd_per_gpu_hour
    lines = [
        Line(
            "compute", hours,
            f"{plan.gpu_hours:,.1f} GPU-hours x {usd_per_gpu_hour:.2f} USD",
            f"{plan.gpu_hours:,.1f} 卡时 × {usd_per_gpu_hour:.2f} 美元",
        ),
        _retries(plan, hours), *_beside(plan, usd_per_gpu_hour),
    ]  # fmt: skip
    lines = [line for line in lines if line.usd or line.item == "compute"]
    return [*lines, _buffer(plan, total(lines))] if plan.buffer != 0 else lines


def total(lines: list[Line]) -> float:
    """Sum of a bill in USD."""
    return sum(line.usd for line in lines)


def buffer_share(gpu_count: int) -> float:
    """The share kept in reserve for this many cards."""
    steps = defaults()["buffer"]["step"]
    share: float = next(step["share"] for step in steps if gpu_count <= step["most_gpus"])
    return share


def _checked(plan: Budget, price: float) -> None:
    for name, value in (("gpu_hours", plan.gpu_hours), ("price_usd_per_hour", price), ("buffer", plan.buffer or 0)):
        if value < 0:
            raise EstimatorError(f"{name} {value:g} is negative; give 0 or more", f"{name} {value:g} 不能为负数", name)


def _retries(plan: Budget, hours: float) -> Line:
    share = waste(plan.gpu_count, plan.checkpointing, plan.hours_between) if plan.retries else 0.0
    cards, cards_zh = ("1 card" if plan.gpu_count == 1 else f"{plan.gpu_count} cards"), f"{plan.gpu_count} 张卡"
    why = f"failures and restarts: {share:.2%} of the time on {cards} (Young/Daly)"
    why_zh = f"故障与重启：{cards_zh}约损失 {share:.2%} 的时间（Young/Daly）"
    chance = 100 * chance_of_failure(plan.gpu_count, plan.gpu_hours / plan.gpu_count)
    if plan.hours_between is None and chance >= WORTH_TELLING:
        why, why_zh = f"{why}, a chance of {chance:.2g} % of any", f"{why_zh}，至少中断一次的概率 {chance:.2g}%"
    return Line("retries", hours * share, why, why_zh)


def _beside(plan: Budget, price: float) -> list[Line]:
    known = defaults()
    idle, tests, storage = known["idle"], known["evaluation"], known["storage"]
    idle_hours = max(idle["least_hours"] * plan.gpu_count, idle["share"] * plan.gpu_hours) if plan.idle else 0
    tested = tests["share"] * plan.gpu_hours if plan.evaluation else 0
    return [
        Line("idle", idle_hours * price, idle["why"], idle["why_zh"], assumed=True),
        Line("evaluation", tested * price, tests["why"], tests["why_zh"], assumed=True),
        Line("storage", plan.storage_gb_months * storage["usd_per_gb_month"], storage["why"], storage["why_zh"]),
        Line("egress", plan.egress_usd, "data carried out, as given", "按给定的流出数据量"),
    ]


def _buffer(plan: Budget, before: float) -> Line:
    share = buffer_share(plan.gpu_count) if plan.buffer is None else plan.buffer
    why = f"{share:.0%} buffer: a failed attempt, surprises, a price step"
    return Line("buffer", before * share, why, f"{share:.0%} 缓冲：一次失败的尝试、意外与价格波动")
