"""xIELU as transformers 5.24 writes it out where its CUDA package is missing (activations.py)."""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.model import Layer, Model
from estimator.step.tape import BOOL, Tensor


def xielu(model: Model, layer: Layer, x: Tensor, name: str) -> Tensor:
    """``where(x > 0, a x x + b x, (expm1(min(x, e)) - x) c + b x)`` with trained numbers a and c."""
    positive = softplus(layer.weight(f"{name}.alpha_p"))
    negative = ops.shift(softplus(layer.weight(f"{name}.alpha_n")))
    beta = Tensor(model.tape, None, "1", 1, x.itemsize)
    condition = model.tape.like(x, BOOL)
    upper = ops.add(product(positive, x, x), ops.mul(x, beta))
    lower = ops.mul(ops.subtract(expm1(minimum(x)), x), negative)
    lower = ops.add(lower, ops.mul(x, beta))
    return where(condition, upper, lower)


def softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))``, fp32 under autocast."""
    return ops.keeps_input(ops.full(x))


def product(factor: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``factor * x * y``."""
    return ops.mul(ops.mul(x, factor), y)


def minimum(x: Tensor) -> Tensor:
    """The smaller of ``x`` and a number kept as a tensor."""
    tape = x.tape
    out = tape.like(x)
    if not x.needs:
        return out
    rows, width, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        equal, halved = tape.new(rows, width, BOOL), tape.new(rows, width, size)
        result = tape.new(rows, width, size)
        greater = tape.new(rows, width, BOOL)
        del equal, halved, greater
        return (result,)

    return tape.attach(out, (x,), [tape.save(x)], backward)


def expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1``, fp32 under autocast; keeps its result, the backward adds one to it and multiplies."""
    x = ops.full(x)
    tape = x.tape
    out = tape.like(x)
    if not x.needs:
        return out
    rows, width, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        shifted = tape.new(rows, width, size)
        result = tape.new(rows, width, size)
        del shifted
        return (result,)

    return tape.attach(out, (x,), [tape.save(out)], backward)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``where(condition, x, y)``: keeps the condition; both gradients are new tensors."""
    tape = x.tape
    kept = [tape.save(condition)] if x.needs or y.needs else []
    out = tape.like(x, max(x.itemsize, y.itemsize))
    if not (x.needs or y.needs):
        return out
    rows, width, size = ops.shape_of(out)
    return tape.attach(out, (x, y), kept, lambda g: [tape.new(rows, width, size) for _ in range(2)])
