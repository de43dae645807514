"""How fast a job runs: model FLOPs utilisation by card and regime, and the time that follows."""

from dataclasses import dataclass
from typing import Any

from estimator.cost.tables import table_of
from estimator.cost.work import Work, flops_per_token
from estimator.errors import EstimatorError

LONG = 16_384
"""Tokens from which utilisations measured at up to 4k no longer speak for a run."""


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Shares of the dense 16-bit peak, and what they are based on; ``long``: measured at 16k tokens or more."""

    low: float
    expected: float
    high: float
    basis: str
    basis_zh: str
    measured: bool = True
    long: bool = False

    def times(self, factor: float, why: str, why_zh: str) -> "Utilisation":
        """The same, changed by a factor with its reason."""
        low, expected, high = (_clamped(share * factor) for share in (self.low, self.expected, self.high))
        return self._changed((low, expected, high), factor, why, why_zh)

    def shared(self, factor: float, why: str, why_zh: str) -> "Utilisation":
        """The same where cards wait for each other, which no limit of a single card's use bounds."""
        shares = (self.low * factor, self.expected * factor, self.high * factor)
        return self._changed(shares, factor, why, why_zh)

    def _changed(self, shares: tuple[float, float, float], factor: float, why: str, why_zh: str) -> "Utilisation":
        basis, basis_zh = f"{self.basis}; x {factor:.2g}: {why}", f"{self.basis_zh}；x {factor:.2g}：{why_zh}"
        return Utilisation(*shares, basis, basis_zh, self.measured, self.long)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What decides speed: the dense 16-bit peak in TFLOP/s, bandwidth in GB/s, nominal memory in GB."""

    name: str
    arch: str
    kind: str
    memory_gb: float
    peak_tflops: float | None
    bandwidth_gbs: float | None
    price_usd: float | None = None
    tdp_w: float | None = None
    price_as_of: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done with how much: ``tokens`` are all tokens trained on, epochs included.

    ``micro_batch`` counts the rows of a forward on one card. ``stages`` of a pipeline (virtual ones divide its bubble)
    see ``micro_steps`` micro-batches a step; ``in_turn``: the cards hold layers and work one after the other.
    """

    work: Work
    tokens: float
    gpu_count: int = 1
    nodes: int = 1
    seq_len: int = 1024
    micro_batch: int = 1
    adapter: bool = False
    quantised: bool = False
    fp8: bool = False
    eager: bool = False
    ethernet: bool = False
    stages: int = 1
    micro_steps: int = 1
    in_turn: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of wall time (low: everything goes well), the uplift included; tokens/s over all cards, expected."""

    low_seconds: float
    expected_seconds: float
    high_seconds: float
    tokens_per_second: float
    flops_per_token: float
    utilisation: Utilisation
    uplift: float

    def gpu_hours(self, gpu_count: int) -> tuple[float, float, float]:
        """Card-hours: low, expected, high."""
        low, expected, high = (
            seconds * gpu_count / 3600 for seconds in (self.low_seconds, self.expected_seconds, self.high_seconds)
        )
        return low, expected, high


def table() -> dict[str, Any]:
    """The utilisations and factors with their sources."""
    return table_of("mfu")


def utilisation_of(card: Accelerator, job: Job) -> Utilisation:
    """The utilisation to expect of this job on this card."""
    row = next(row for row in table()["class"] if _fits(row, card, job))
    found = Utilisation(
        row["low"], row["default"], row["high"], row["basis"], row["basis_zh"], row["measured"], "least_length" in row
    )
    for factor in table()["factor"]:
        if _applies(factor["id"], job):
            found = found.times(factor["value"], factor["why"], factor["why_zh"])
    return _laid_out(found, job)


def _laid_out(found: Utilisation, job: Job) -> Utilisation:
    """Cards that wait for each other: layers dealt out one after the other, and a pipeline's bubble (GPipe, 1F1B)."""
    if job.in_turn and job.gpu_count > 1:
        why, why_zh = "the cards hold layers in turn, one works at a time", "各卡按层串行，同一时刻只有一张在算"
        return found.shared(1 / job.gpu_count, why, why_zh)
    if job.stages > 1:
        share = job.micro_steps / (job.micro_steps + job.stages - 1)
        why = f"a pipeline of {job.stages} stages and {job.micro_steps} micro-batches"
        return found.shared(share, why, f"{job.stages} 级流水线，{job.micro_steps} 个 micro-batch")
    return found


def timing(job: Job, card: Accelerator, given: Utilisation | None = None, uplift: float | None = None) -> Timing:
    """Wall time of a job; ``given`` is a utilisation that the user measured. Raises ``EstimatorError``.

    tokens x operations per token / (cards x peak x utilisation), times the uplift on estimates of time.
    """
    if not card.peak_tflops:
        raise _no_peak(card)
    used = given or utilisation_of(card, job)
    each = flops_per_token(job.work)
    slower, raised = _factors(job), _uplift(used, job, given) if uplift is None else uplift
    ideal = job.tokens * each / (job.gpu_count * card.peak_tflops * 1e12)
    fast, expected, slow = (
        ideal / share * factor for share, factor in zip((used.high, used.expected, used.low), slower, strict=True)
    )
    return Timing(fast, expected * (1 + raised), slow * (1 + raised), job.tokens / expected, each, used, raised)


def given_speed(
    job: Job, card: Accelerator, tokens_per_second: float | None = None, mfu: float | None = None
) -> Timing | None:
    """The time at a speed over all cards, or a utilisation, that the user gave; None where neither is given.

    What somebody measured holds everything already: no uplift and no factor comes on top. Raises ``EstimatorError`` for
    a utilisation of a card whose peak is not known, and for a speed beyond the card's peak.
    """
    if tokens_per_second is None and mfu is None:
        return None
    each = flops_per_token(job.work)
    peak = (card.peak_tflops or 0) * 1e12 * job.gpu_count
    if tokens_per_second is None:
        if not peak:
            raise _no_peak(card)
        speed, basis, basis_zh = (mfu or 0) * peak / each, "your own utilisation", "用户给出的利用率"
    else:
        speed, basis, basis_zh = tokens_per_second, "your own tokens per second", "用户实测的 token/s"
    if peak and speed * each > 2 * peak:
        most = f"{peak / each:,.0f}"
        raise EstimatorError(
            f"{speed:,.0f} tokens per second is more than {job.gpu_count} x {card.name} can do (about {most} at its "
            "16-bit peak); give the speed over all cards",
            f"{speed:,.0f} token/s 超过 {job.gpu_count} 张 {card.name} 的能力（16 位峰值约 {most}）；"
            "请给出所有卡合计的速度",
            "economics.tokens_per_second",
        )
    share = speed * each / peak if peak else 0.0
    seconds = job.tokens / speed
    return Timing(seconds, seconds, seconds, speed, each, Utilisation(share, share, share, basis, basis_zh), 0.0)


def _no_peak(card: Accelerator) -> EstimatorError:
    return EstimatorError(
        f"the 16-bit speed of {card.name} is not known; give your own tokens per second",
        f"没有 {card.name} 的 16 位算力数据；请给出实测的 token/s",
        "gpu",
    )


def _fits(row: dict[str, Any], card: Accelerator, job: Job) -> bool:
    named = any(card.name.startswith(name) for name in row.get("name", [card.name]))
    of_kind = card.arch in row.get("arch", [card.arch]) and card.kind in row.get("kind", [card.kind])
    sized = card.memory_gb >= row.get("least_gb", 0) and job.seq_len >= row.get("least_length", 0)
    several = job.gpu_count > 1 or not row.get("many")
    return named and of_kind and sized and several and (job.adapter or not row.get("adapter"))


def _applies(factor: str, job: Job) -> bool:
    if factor in ("ethernet", "infiniband"):
        return job.nodes > 1 and job.ethernet == (factor == "ethernet")
    if factor == "small-batch":
        return job.micro_batch * job.seq_len < 2048
    return job.eager and job.seq_len >= 4096


def _factors(job: Job) -> tuple[float, float, float]:
    """What the time is multiplied by for other arithmetic than plain 16 bits: low, expected, high."""
    slower = table()["quantised"] if job.quantised else {"low": 1.0, "default": 1.0, "high": 1.0}
    faster = table()["fp8"] if job.fp8 else {"low": 1.0, "default": 1.0, "high": 1.0}
    return slower["low"] / faster["high"], slower["default"] / faster["default"], slower["high"] / faster["low"]


def _uplift(used: Utilisation, job: Job, given: Utilisation | None) -> float:
    if given is not None:
        return 0.0
    known = used.measured and (job.seq_len < LONG or used.long)
    raised: float = table()["uplift"]["measured" if known else "unmeasured"]
    return raised


def _clamped(share: float) -> float:
    low, high = table()["limits"]["low"], table()["limits"]["high"]
    return max(min(share, float(high)), float(low))
