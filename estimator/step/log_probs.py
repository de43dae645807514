"""Log-probabilities from whole logits, as trl computes them where its fused head is not used.

trl 1.16.0, ``selective_log_softmax`` (trl/trainer/utils.py) without Triton: row by row, a log-softmax of half-precision
logits, the log-sum-exp of fp32 ones; up to trl 0.12 a gather over one log-softmax.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.tape import HALF, Tensor


def selective(logits: Tensor) -> Tensor:
    """The log-probability of each row's label."""
    return _half(logits) if logits.itemsize == HALF else _full(logits)


def _half(logits: Tensor) -> Tensor:
    """One log-softmax a row is kept; each gives way to its gradient, and the gradients are stacked."""
    tape = logits.tape
    scores = tape.like(logits)
    out = tape.new(logits.rows, 1, HALF)
    if not logits.needs:
        return out
    rows, width, size = ops.shape_of(logits)

    def backward(g: Tensor, gradients: object) -> Sequence[Tensor | None]:
        inside = [tape.new(("row", rows), width, size) for _ in range(2)]
        del inside
        return (tape.new(rows, width, size),)

    return tape.attach_in_place(out, (logits,), [tape.save(scores)], backward)


def _full(logits: Tensor) -> Tensor:
    """The logits themselves are kept, for the log-sum-exp; its gradient meets that of the chosen entries."""
    tape = logits.tape
    kept = [tape.save(logits)] if logits.needs else []
    out = tape.new(logits.rows, 1, logits.itemsize)
    if not logits.needs:
        return out
    shape = ops.shape_of(logits)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        by_row = tape.new(*shape)
        stacked = tape.new(*shape)
        del by_row
        zeros = tape.new(*shape)
        chosen = tape.new(*shape)
        del zeros
        total = tape.new(*shape)
        del stacked, chosen
        return (total,)

    return tape.attach(out, (logits,), kept, backward)


def gathered(logits: Tensor) -> Tensor:
    """``gather(log_softmax(logits))``: the whole log-softmax is kept."""
    scores = ops.full(ops.keeps_output(logits))
    tape = scores.tape
    out = tape.new(scores.rows, 1, scores.itemsize)
    if not scores.needs:
        return out
    shape = ops.shape_of(scores)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        zeros = tape.new(*shape)
        chosen = tape.new(*shape)
        del zeros
        return (chosen,)

    return tape.attach(out, (scores,), (), backward)
