"""The time that generating text takes: the prompt is read at the card's arithmetic, each token at its bandwidth."""

from estimator.architecture import Architecture
from estimator.cost.amounts import generated_amount
from estimator.cost.decoding import Decoding, Step, step_of, weights_read
from estimator.cost.jobs import hours
from estimator.cost.speed import Accelerator
from estimator.cost.tables import table_of
from estimator.cost.work import attention_width
from estimator.economics import Assumed, Economics, Seconds, TimeEstimate
from estimator.errors import EstimatorError
from estimator.inventory import active_parameters, inventory
from estimator.schema import Estimate, Run

HALF = 2


def generation_time(found: Estimate, arch: Architecture, card: Accelerator, said: Economics) -> TimeEstimate:
    """Seconds and tokens per second of an inference run whose memory is estimated; without an amount the speed alone.

    Raises ``EstimatorError`` for a card whose bandwidth is not known.
    """
    run = found.run
    assert run is not None
    step = step_of(decoding_of(found, arch), card)
    if step is None:
        raise EstimatorError(
            f"the memory bandwidth of {card.name} is not known; give your own tokens per second",
            f"没有 {card.name} 的显存带宽数据；请给出实测的 token/s",
            "gpu",
        )
    step = _measured(step, said, requests_of(run))
    amount = generated_amount(run)
    read = prompt_seconds(run, arch, card)
    seconds = _seconds(run, amount, step, read)
    return TimeEstimate(
        seconds=seconds,
        tokens_per_second=requests_of(run) / step.expected,
        flops_per_token=2.0 * active_parameters(arch),
        mfu=None,
        basis="your own tokens per second" if said.tokens_per_second else _basis(step.bound, "why"),
        basis_zh="用户实测的 token/s" if said.tokens_per_second else _basis(step.bound, "why_zh"),
        measured=said.tokens_per_second is not None,
        tokens=amount,
        gpu_hours=hours(seconds, run.gpu_count or 1),
        notes=_notes(run, read),
    )


def requests_of(run: Run) -> int:
    """Requests that are answered at once."""
    return (run.concurrency or 1) * (run.micro_batch or 1)


def decoding_of(found: Estimate, arch: Architecture) -> Decoding:
    """What a step of decoding reads on one card."""
    run, served = found.run, found.serving
    assert run is not None
    stored = served.weights_bytes if served and served.weights_bytes else _block(found, "weights")
    requests, active, total = requests_of(run), active_parameters(arch), inventory(arch).numel
    each = served.kv_bytes_per_token if served and served.kv_bytes_per_token else arch.layers * 2 * arch.kv_width * HALF
    by_transformers = run.engine in (None, "hf")
    return Decoding(
        weights_bytes=weights_read(stored, active, total, requests),
        kv_bytes=each * ((run.context_len or 1) + (run.new_tokens or 0) / 2),
        parameters=active,
        requests=requests,
        gpu_count=run.gpu_count or 1,
        in_turn=_in_turn(run),
        eager_layers=arch.layers if by_transformers else 0,
    )


def prompt_seconds(run: Run, arch: Architecture, card: Accelerator) -> float:
    """Seconds to read the prompts of all requests of a batch."""
    if not card.peak_tflops:
        return 0.0
    length, cards = run.context_len or 1, 1 if _in_turn(run) else run.gpu_count or 1
    each = 2 * active_parameters(arch) + 4 * attention_width(arch, length)
    share: float = table_of("decoding")["compute"]["share"]
    return requests_of(run) * length * each / (card.peak_tflops * 1e12 * share * cards)


def _in_turn(run: Run) -> bool:
    """Whether several cards hold layers one after the other: transformers' device_map and llama.cpp's layer split."""
    tensor = run.parallel.tensor if run.parallel else 1
    return (run.gpu_count or 1) > 1 and tensor == 1


def _measured(step: Step, said: Economics, requests: int) -> Step:
    if said.tokens_per_second is None:
        return step
    own = requests / said.tokens_per_second
    return Step(own, own, own, step.bound)


def _seconds(run: Run, amount: float | None, step: Step, read: float) -> Seconds | None:
    """A batch of requests reads its prompts and then decodes; as many batches as the amount needs."""
    if amount is None:
        return None
    steps = amount / requests_of(run)
    batches = steps / (run.new_tokens or 1)
    return Seconds(
        low=steps * step.low + batches * read,
        expected=steps * step.expected + batches * read,
        high=steps * step.high + batches * read,
    )


def _block(found: Estimate, item: str) -> float:
    blocks = found.per_gpu.at_peak if found.per_gpu else []
    return float(sum(block.bytes for block in blocks if block.item == item))


def _notes(run: Run, read: float) -> list[Assumed]:
    why = f"reading the prompts of a batch takes {read:.2g} s more"
    why_zh = f"另需 {read:.2g} 秒读入一批提示词"
    return [Assumed(field="context_len", value=run.context_len, why=why, why_zh=why_zh)] if read else []


def _basis(bound: str, name: str) -> str:
    """What decides the speed, and that the shares of the card's limits are assumptions."""
    table = table_of("decoding")["bound"]
    return f"{table[bound][name]}{table[name]}"
