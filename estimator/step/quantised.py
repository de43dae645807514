"""Linears over a quantised frozen weight: the weight is made again in 16 bit for each use and dropped at once.

bitsandbytes 0.50.2 (``MatMul4Bit``, ``MatMul8bitLt`` and the CUDA backend's int8 operations); GPTQ and AWQ in
``packed``. Bases that are not known by name run as 4-bit ones do.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.packed import linear_packed, packed_format, unpacked
from estimator.step.tape import BOOL, FULL, HALF, Tape, Tensor

BITSANDBYTES_4BIT = ("nf4", "nf4-dq", "fp4", "fp4-dq")
BITSANDBYTES = (*BITSANDBYTES_4BIT, "int8")


def quantised_linear(
    x: Tensor,
    elements: int,
    width: int,
    name: str,
    *,
    fp16: bool = False,
    remade: bool = False,
    kept: bool = False,
    twice: bool = False,
) -> Tensor:
    """The linear of a frozen weight in the format ``name``.

    ``remade``: see ``linear_packed``; ``kept``, ``twice``: see ``linear_4bit``.
    """
    if name == "int8":
        return linear_int8(x, elements, width, fp16=fp16)
    if packed_format(name):
        return linear_packed(x, elements, width, name, fp16=fp16, remade=remade)
    return linear_4bit(x, elements, width, name, kept=kept, twice=twice)


def dequantised(tape: Tape, elements: int, outputs: int, name: str) -> Tensor:
    """The whole weight in the type that the format gives it back in."""
    if name == "int8":
        raw = tape.new("1", elements, FULL, "weight_casts")
        scales = tape.new("1", outputs, FULL, "weight_casts")
        weight = tape.new("1", elements, FULL, "weight_casts")
        del raw, scales
        return weight
    if packed_format(name):
        return unpacked(tape, elements, name)
    return _from_4bit(tape, elements, name)


def _from_4bit(tape: Tape, elements: int, name: str) -> Tensor:
    absmax = tape.new("1", -(-elements // 64), FULL, "weight_casts") if name.endswith("-dq") else None
    weight = tape.new("1", elements, HALF, "weight_casts")
    del absmax
    return weight


def in_two_steps(tape: Tape, elements: int, name: str) -> Tensor:
    """A 4-bit weight that was packed from fp16, for compute in bf16: in fp16 first, then in bf16."""
    first = _from_4bit(tape, elements, name)
    weight = tape.like(first, HALF, "weight_casts")
    del first
    return weight


def linear_4bit(x: Tensor, elements: int, width: int, name: str, *, kept: bool = False, twice: bool = False) -> Tensor:
    """``MatMul4Bit`` with 16-bit compute: keeps the packed weight, before bitsandbytes 0.43 the input too.

    ``twice``: see ``in_two_steps``.
    """
    itemsize = x.itemsize
    x = ops.cast(x, HALF)
    tape = x.tape
    out = tape.new(x.rows, width, HALF)
    if x.needs:
        rows, inputs, size = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            weight = in_two_steps(tape, elements, name) if twice else _from_4bit(tape, elements, name)
            result = tape.new(rows, inputs, size)
            del weight
            return (result,)

        tape.attach(out, (x,), [tape.save(x)] if kept else (), backward)
    return ops.cast(out, itemsize)


def linear_int8(x: Tensor, elements: int, width: int, *, fp16: bool) -> Tensor:
    """``MatMul8bitLt`` without outliers: the input quantised row by row, an int32 product, its 16-bit form.

    The input is kept outside autograd's saved tensors: checkpointing does not drop it. The backward makes the weight
    again in the input's type.
    """
    tape, itemsize = x.tape, x.itemsize
    half = None if fp16 and itemsize == HALF else tape.like(x, HALF)
    row_scales = tape.new(x.rows, 1, FULL)
    quantised = tape.like(x, 1)
    absolute = tape.like(x, HALF)
    outliers = tape.like(x, BOOL)
    del absolute, outliers, half
    product = tape.new(x.rows, width, FULL)
    out = tape.new(x.rows, width, HALF)
    if not (fp16 and itemsize == HALF):
        out = tape.new(x.rows, width, itemsize)
    del row_scales, quantised, product
    if not x.needs:
        return out
    rows, inputs, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        weight = tape.new("1", elements, size, "weight_casts")
        scales = tape.new("1", width, FULL, "weight_casts")
        del scales
        result = tape.new(rows, inputs, size)
        del weight
        return (result,)

    tape.pin(x.storage)
    return tape.attach(out, (x,), (), backward)
