"""The time that a filled training run takes on a card."""

from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.cost.amounts import Amount, trained_amount
from estimator.cost.decoding import Decoding, step_of, weights_read
from estimator.cost.speed import Accelerator, Job, Timing, given_speed, timing
from estimator.cost.tables import table_of
from estimator.cost.work import mean_length, work_of
from estimator.economics import Assumed, Economics, Seconds, TimeEstimate
from estimator.inventory import active_parameters, inventory
from estimator.regimes import adapted
from estimator.schema import Run
from estimator.stages.rows import rows_per_item
from estimator.step.tape import HALF

PROBE = 1e6
"""Tokens for which a speed is worked out where no amount was said."""


class Training(NamedTuple):
    """A filled run with what was asked in so many words."""

    run: Run
    arch: Architecture
    asked: Run

    @property
    def said(self) -> Economics:
        """What was said about time and money."""
        return self.asked.economics or Economics()


def job_of(what: Training, tokens: float) -> Job:
    """The run as a job of so many tokens."""
    run, parallel = what.run, what.run.parallel
    stages = parallel.pipeline if parallel else 1
    return Job(
        work=work_of(run, what.arch, what.asked.gradient_checkpointing),
        tokens=tokens,
        gpu_count=run.gpu_count or 1,
        nodes=run.nodes or 1,
        seq_len=int(mean_length(run)),
        micro_batch=(run.micro_batch or 1) * rows_per_item(run),
        adapter=adapted(run),
        quantised=adapted(run) and run.weight_format is not None,
        fp8=run.precision == "fp8",
        eager=run.attention == "eager",
        ethernet=bool(what.said.ethernet),
        stages=stages,
        micro_steps=(run.grad_accum or 1) * (parallel.virtual_stages if parallel else 1),
        in_turn=parallel is not None and parallel.engine == "device_map",
    )


def training_time(what: Training, card: Accelerator) -> TimeEstimate:
    """Seconds, speed and utilisation of a training run; without an amount the speed alone.

    A speed or a utilisation of the user's own takes the place of the table's. Raises ``EstimatorError`` for a card
    whose speed is not known.
    """
    amount = trained_amount(what.run)
    job = job_of(what, amount.expected if amount else PROBE)
    own = _own_speed(what.said, job, card)
    found = own if own is not None else timing(job, card)
    made = generation_seconds(what, amount, card)
    seconds = _seconds(found, amount, made)
    return TimeEstimate(
        seconds=seconds,
        tokens_per_second=found.tokens_per_second,
        flops_per_token=found.flops_per_token,
        mfu=_achieved(found, job, card),
        basis=found.utilisation.basis,
        basis_zh=found.utilisation.basis_zh,
        measured=own is not None or found.utilisation.measured,
        tokens=amount.expected if amount else None,
        uplift=found.uplift,
        generation_seconds=made[1] if amount else 0.0,
        gpu_hours=hours(seconds, job.gpu_count),
        notes=_notes(what, amount),
    )


def hours(seconds: Seconds | None, gpu_count: int) -> Seconds | None:
    """Card-hours of so many seconds on every card."""
    if seconds is None:
        return None
    factor = gpu_count / 3600
    return Seconds(low=seconds.low * factor, expected=seconds.expected * factor, high=seconds.high * factor)


def _own_speed(said: Economics, job: Job, card: Accelerator) -> Timing | None:
    """The user's own tokens per second, or utilisation; nothing is added to what somebody measured."""
    return given_speed(job, card, said.tokens_per_second, said.mfu)


def _seconds(found: Timing, amount: Amount | None, made: tuple[float, float, float]) -> Seconds | None:
    """The time of the step, longer or shorter with padding, and of the generation before it."""
    if amount is None:
        return None
    return Seconds(
        low=found.low_seconds * amount.low / amount.expected + made[0],
        expected=found.expected_seconds + made[1],
        high=found.high_seconds * amount.high / amount.expected + made[2],
    )


def _achieved(found: Timing, job: Job, card: Accelerator) -> float | None:
    """The share of the peak that the speed comes to, dequantisation and fp8 included."""
    if not card.peak_tflops:
        return None
    return found.tokens_per_second * found.flops_per_token / (job.gpu_count * card.peak_tflops * 1e12)


def generation_seconds(what: Training, amount: Amount | None, card: Accelerator) -> tuple[float, float, float]:
    """Seconds that GRPO's completions take to generate, before they are trained on: low, expected, high."""
    run = what.run
    length = run.rl.max_completion_len if run.rl and run.stage == "grpo" else None
    if amount is None or not length or (step := step_of(_decoding(what, length), card)) is None:
        return 0.0, 0.0, 0.0
    at_once = (run.micro_batch or 1) * rows_per_item(run) * (run.gpu_count or 1)
    steps = amount.rows / at_once * length
    shares = table_of("decoding")["completion"]
    return steps * shares["low"] * step.low, steps * shares["default"] * step.expected, steps * step.high


def _decoding(what: Training, length: int) -> Decoding:
    """One card's part: each generates for its own prompts, with the weights in half precision."""
    run, arch = what.run, what.arch
    requests = (run.micro_batch or 1) * rows_per_item(run)
    active, total = active_parameters(arch), inventory(arch).numel
    context = max(mean_length(run) - length / 2, length / 2)
    return Decoding(
        weights_bytes=weights_read(total * HALF, active, total, requests),
        kv_bytes=context * arch.layers * 2 * arch.kv_width * HALF,
        parameters=active,
        requests=requests,
        eager_layers=arch.layers if run.rl is None or run.rl.engine in (None, "hf") else 0,
    )


def _notes(what: Training, amount: Amount | None) -> list[Assumed]:
    """What the time leaves out or takes for granted."""
    run, notes = what.run, []
    if amount and run.samples and what.asked.seq_len is None:
        notes.append(
            Assumed(
                field="seq_len",
                value=int(mean_length(run)),
                why="every row is counted as full; say its mean length for a shorter time",
                why_zh="按每行都填满计算；给出平均长度会更准",
            )
        )
    if run.offload and {run.offload.optimizer, run.offload.parameters} != {"none"}:
        why = "moving offloaded states over PCIe takes time that is not in this figure"
        notes.append(Assumed(field="offload", value="cpu", why=why, why_zh="卸载到内存的传输时间未计入"))
    if run.stage == "grpo":
        why = "completions are generated at an assumed share of the card's bandwidth, and end at 75 % of their limit"
        why_zh = "回答的生成速度按假设的带宽利用率计算，平均长度按上限的 75%"
        notes.append(Assumed(field="rl", value=amount.rows if amount else None, why=why, why_zh=why_zh))
    return notes
