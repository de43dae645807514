"""Linears over a quantised frozen weight: the weight is made again in 16 bit for each use and dropped at once."""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.tape import FULL, HALF, Tensor


def linear_4bit(x: Tensor, elements: int, width: int, quantised: str) -> Tensor:
    """bitsandbytes' ``MatMul4Bit`` with bf16 compute; keeps nothing but the packed weight (bitsandbytes 0.50)."""
    itemsize = x.itemsize
    x = ops.cast(x, HALF)
    tape = x.tape
    out = tape.new(x.rows, width, HALF)
    if x.needs:
        rows, inputs, size = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            absmax = tape.new("1", elements // 64, FULL, "weight_casts") if quantised == "nf4-dq" else None
            weight = tape.new("1", elements, HALF, "weight_casts")
            del absmax
            result = tape.new(rows, inputs, size)
            del weight
            return (result,)

        tape.attach(out, (x,), (), backward)
    return ops.cast(out, itemsize)


def linear_int8(x: Tensor, elements: int, width: int) -> Tensor:
    """bitsandbytes' ``MatMul8bitLt`` (LLM.int8): the backward dequantises the weight to 16 bit."""
    itemsize = x.itemsize
    x = ops.cast(x, HALF)
    tape = x.tape
    rows_quantised = tape.new(x.rows, x.width, 1)
    out = tape.new(x.rows, width, HALF)
    del rows_quantised
    if x.needs:
        rows, inputs, size = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            weight = tape.new("1", elements, HALF, "weight_casts")
            result = tape.new(rows, inputs, size)
            del weight
            return (result,)

        tape.attach(out, (x,), (), backward)
    return ops.cast(out, itemsize)
