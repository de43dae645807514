"""Why what stands beside the step is as large as it is: weights, adapters, states, gradients that wait."""

from estimator.optimizers import OptimizerMemory
from estimator.reasons import SMALL_BUFFER, TEXTS, block
from estimator.schema import Block
from estimator.trainables import Trainable
from estimator.weights import BUFFERS, Part, Weights, stored_as, stored_as_zh


def weights_block(item: str, held: Weights) -> Block:
    """The base weights, or the adapter, with their shares."""
    shares = [part for part in held.parts if part.item == item]
    total = sum(part.bytes for part in shares)
    parts = [
        block(item, part.bytes, f"{part.label_en}: {part.why}", f"{part.label_zh}：{part.why_zh}") for part in shares
    ]
    return block(item, total, *_weights_line(shares), parts if len(parts) > 1 else None)


def _weights_line(shares: list[Part]) -> tuple[str, str]:
    """One product where every parameter has the same size, else how the shares are stored; small buffers left out."""
    told = [part for part in shares if part.elements or part.bytes >= SMALL_BUFFER]
    kinds = {kind for part in told for kind, _ in part.elements}
    if len(kinds) == 1 and all(part.elements for part in told) and (size := kinds.pop()).endswith(" B"):
        count = sum(number for part in told for _, number in part.elements)
        each = size.removesuffix(" B")
        return f"{count:,} parameters x {each} B", f"{count:,} 个参数 x {each} 字节"
    pairs = [_share(part) for part in told] or [BUFFERS]
    return ", ".join(english for english, _ in pairs), "，".join(chinese for _, chinese in pairs)


def _share(part: Part) -> tuple[str, str]:
    """A share in few figures: its type, or the average where it mixes types."""
    if len(part.elements) == 1:
        kind, count = part.elements[0]
        return f"{part.label_en} {stored_as(kind, count)}", f"{part.label_zh} {stored_as_zh(kind, count)}"
    count = sum(number for _, number in part.elements)
    if not count:
        return f"{part.label_en} {part.bytes:,} B", f"{part.label_zh} {part.bytes:,} 字节"
    average = f"{count:,} x {part.bytes * 8 / count:.3g}"
    return f"{part.label_en} {average} bit", f"{part.label_zh} {average} 位"


def states_of(trained: tuple[Trainable, ...], optimizer: OptimizerMemory) -> tuple[str, str]:
    """How many parameters train and what the optimizer keeps of each."""
    count, times, times_zh = _each(trained, optimizer.states)
    return (
        f"{count:,} trainable parameters{times}: {optimizer.why}",
        f"{count:,} 个可训练参数{times_zh}：{optimizer.why_zh}",
    )


def waiting_of(trained: tuple[Trainable, ...], size: int) -> tuple[str, str]:
    """A copy of the gradients that waits: how many parameters, and bytes of each."""
    count, times, times_zh = _each(trained, size)
    why, why_zh = TEXTS["waiting"]
    return f"{count:,} parameters{times}: {why}", f"{count:,} 个参数{times_zh}：{why_zh}"


def _each(trained: tuple[Trainable, ...], size: int) -> tuple[int, str, str]:
    """How many parameters train, and the bytes of each where there are any."""
    count = sum(tensor.numel * tensor.times for tensor in trained)
    if not count or not size:
        return count, "", ""
    each = f"{size / count:.3f}".rstrip("0").rstrip(".")
    return count, f" x {each} B", f" x {each} 字节"
