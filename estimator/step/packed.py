"""Linears over GPTQ- and AWQ-packed weights in training.

GPTQModel (gptqmodel/nn_modules/qlinear/torch.py, commit 011c00a; its Triton linear trains through the same code): the
weight is made again by compiled torch code, cast to the input's type and multiplied under autograd, which keeps it
for the backward: a run without checkpointing holds the whole model in 16 bit. auto-gptq's Triton linear before it
(read in fms-acceleration, triton_utils/dequant.py, ``QuantLinearFunction``) makes it again for the backward.

AWQ (AutoAWQ awq/modules/linear/gemm.py, ``WQLinearMMFunction``): half-precision input kept, weight made again in
forward and backward.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.tape import HALF, Tape, Tensor


def packed_format(name: str) -> bool:
    """Whether a format is GPTQ's or AWQ's."""
    return name.startswith(("gptq", "awq"))


def unpacked(tape: Tape, elements: int, name: str) -> Tensor:
    """The weight in fp16, as the scales are."""
    return tape.new("1", elements, HALF, "weight_casts")


def linear_packed(x: Tensor, elements: int, width: int, name: str, *, fp16: bool, remade: bool = False) -> Tensor:
    """The linear of a GPTQ or AWQ weight; ``remade``: by auto-gptq's Triton kernels."""
    if name.startswith("awq"):
        return _awq(x, elements, width, fp16=fp16)
    if remade:
        return _triton(x, elements, width)
    return _gptq(x, elements, width, fp16=fp16)


def _gptq(x: Tensor, elements: int, width: int, *, fp16: bool) -> Tensor:
    itemsize, tape = x.itemsize, x.tape
    weight = unpacked(tape, elements, "gptq")
    if not (fp16 and itemsize == HALF):
        weight = tape.new("1", elements, itemsize, "weight_casts")
    weight, x = ops.autocast(weight), ops.autocast(x)
    kept = [tape.save(weight)] if x.needs else []
    out = tape.new(x.rows, width, x.itemsize)
    del weight
    if x.needs:
        shape = ops.shape_of(x)
        tape.attach(out, (x,), kept, lambda g: (tape.new(*shape),))
    return ops.cast(out, itemsize)


def _triton(x: Tensor, elements: int, width: int) -> Tensor:
    itemsize = x.itemsize
    x = ops.cast(x, HALF)
    tape = x.tape
    weight = unpacked(tape, elements, "gptq")
    out = tape.new(x.rows, width, HALF)
    del weight
    if x.needs:
        shape = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            weight = unpacked(tape, elements, "gptq")
            result = tape.new(*shape)
            del weight
            return (result,)

        tape.attach(out, (x,), (), backward)
    return ops.cast(out, itemsize)


def _awq(x: Tensor, elements: int, width: int, *, fp16: bool) -> Tensor:
    itemsize, tape = x.itemsize, x.tape
    half = x if fp16 and itemsize == HALF else ops.cast(x, HALF)
    if half is x and not fp16:
        half = ops.copy(x)
    kept = [tape.save(half)] if half.needs else []
    weight = unpacked(tape, elements, "awq")
    out = tape.new(x.rows, width, HALF)
    del weight
    if half.needs:
        shape = ops.shape_of(half)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            weight = unpacked(tape, elements, "awq")
            repeated = tape.new("b", elements, HALF, "weight_casts")
            result = tape.new(*shape)
            del weight, repeated
            return (result,)

        tape.attach(out, (half,), kept, backward)
    if fp16:
        return ops.cast(out, itemsize)
    return ops.copy(out) if itemsize == HALF else ops.cast(out, itemsize)
