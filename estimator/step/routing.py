"""Operations of expert routing: top-k, gathering rows by index, grouped matrix products, weighted sums.

Sizes as PyTorch 2.13's derivatives allocate them; a row of ``k`` chosen experts is a token's row, ``k`` times as wide.
"""

from collections.abc import Sequence
from functools import partial

from estimator.step import ops
from estimator.step.tape import BOOL, FULL, LONG, Leaf, Rows, Tape, Tensor

INTEGER = 4
"""Bytes of an int32."""


def topk(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``x.topk(k)``: values and int64 indices; the backward scatters into zeros of the input's size."""
    tape = x.tape
    values, indices = tape.new(x.rows, count, x.itemsize), tape.new(x.rows, count, LONG)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(values, (x,), [tape.save(indices)], lambda g: (_scattered(tape, rows, width, size),))
    return values, indices


def _scattered(tape: Tape, rows: Rows, width: int, size: int) -> Tensor:
    zeros = tape.new(rows, width, size)
    result = tape.new(rows, width, size)
    del zeros
    return result


def greatest(x: Tensor, groups: int) -> Tensor:
    """``x.max(-1)`` over each of ``groups``: values, and the indices that autograd keeps."""
    tape = x.tape
    values, indices = tape.new(x.rows, groups, x.itemsize), tape.new(x.rows, groups, LONG)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(values, (x,), [tape.save(indices)], lambda g: (_scattered(tape, rows, width, size),))
    return values


def take(x: Tensor, indices: Tensor, width: int, in_place: bool = False) -> Tensor:
    """``x[indices]``: rows picked by index, ``width`` elements a token; the backward puts them into zeros.

    ``in_place``: the zeros become the gradient.
    """
    tape = x.tape
    kept = [tape.save(indices)] if x.needs else []
    out = tape.new(indices.rows, width, x.itemsize)
    if x.needs:
        rows, whole, size = ops.shape_of(x)
        put = tape.new if in_place else partial(_scattered, tape)
        tape.attach(out, (x,), kept, lambda g: (put(rows, whole, size),))
    return out


def add_in_place(x: Tensor, y: Tensor) -> Tensor:
    """``x.add_(y)``: no new tensor; both gradients are the incoming one."""
    if not (x.needs or y.needs):
        return x
    out = Tensor(x.tape, x.storage, x.rows, x.width, x.itemsize)
    return x.tape.attach(out, (x, y), (), lambda g: (g, g))


def gather(x: Tensor, indices: Tensor) -> Tensor:
    """``x.gather(1, indices)``; the backward adds into zeros in place."""
    tape = x.tape
    kept = [tape.save(t) for t in (x, indices)] if x.needs else []
    out = tape.new(x.rows, indices.width, x.itemsize)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), kept, lambda g: (tape.new(rows, width, size),))
    return out


def masked_fill(x: Tensor, mask: Tensor) -> Tensor:
    """``x.masked_fill(mask, number)``."""
    tape = x.tape
    kept = [tape.save(mask)] if x.needs else []
    out = tape.like(x)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), kept, lambda g: (tape.new(rows, width, size),))
    return out


def total(x: Tensor, width: int = 1, itemsize: int = 0) -> Tensor:
    """``x.sum(-1)`` (or over a group's members, leaving ``width``); the gradient is expanded without a copy."""
    tape = x.tape
    out = tape.new(x.rows, width, itemsize or x.itemsize)
    if x.needs:
        rows, whole, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (Tensor(tape, g.storage, rows, whole, size),))
    return out


def divide_in_place(x: Tensor, y: Tensor) -> Tensor:
    """``x /= y``: autograd clones the old ``x`` to keep it; the divisor's gradient needs four temporaries."""
    tape = x.tape
    if not (x.needs or y.needs):
        return x
    kept = [tape.save(y)]
    original = tape.like(x)
    kept.append(tape.save(original))
    del original
    out = Tensor(tape, x.storage, x.rows, x.width, x.itemsize)
    shape = ops.shape_of(x)
    return tape.attach(out, (x, y), kept, lambda g: _quotient_gradients(tape, shape))


def divide(x: Tensor, y: Tensor) -> Tensor:
    """``x / y``, ``y`` broadcast."""
    tape = x.tape
    kept = [tape.save(t) for t in (x, y)] if x.needs or y.needs else []
    out = tape.like(x, max(x.itemsize, y.itemsize))
    if not kept:
        return out
    shape = ops.shape_of(out)
    return tape.attach(out, (x, y), kept, lambda g: _quotient_gradients(tape, shape))


def _quotient_gradients(tape: Tape, shape: ops.Shape) -> tuple[Tensor, Tensor]:
    """Of ``x / y``: the divisor's takes four steps of which the last stays, then the dividend's."""
    parts = [tape.new(*shape) for _ in range(4)]
    divisor = parts.pop()
    while parts:
        del parts[-1]
    return tape.new(*shape), divisor


def grouped_mm(x: Tensor, weight: Tensor, offsets: Tensor, width: int) -> Tensor:
    """``grouped_mm``: every expert's rows by its own matrix, ``width`` elements a token; weight gradient first."""
    x = ops.cast(x, weight.itemsize)
    tape = x.tape
    needed = x.needs or weight.needs
    wanted = ((x, weight.needs), (weight, x.needs), (offsets, needed))
    kept = [tape.save(tensor) for tensor, keep in wanted if keep]
    out = tape.new(x.rows, width, x.itemsize)
    if not needed:
        return out
    left = ops.shape_of(x) if x.needs else None
    item = "gradients" if isinstance(weight, Leaf) else ""
    right = (weight.width, weight.itemsize, item) if weight.needs else None

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        weights = tape.new("1", *right) if right else None
        return tape.new(*left) if left else None, weights

    return tape.attach(out, (x, weight), kept, backward)


def sum_chosen(x: Tensor, count: int) -> Tensor:
    """The chosen experts' results of each token added up (in fp32 under autocast); the gradient is copied out."""
    tape = x.tape
    size = FULL if tape.autocast else x.itemsize
    out = tape.new(x.rows, x.width // count, size)
    if x.needs:
        rows, width, own = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            if own == g.itemsize:
                return (tape.new(rows, width, own),)
            narrow = tape.new(rows, width // count, own)
            return (_copied(narrow, width),)

        tape.attach(out, (x,), (), backward)
    return out


def _copied(x: Tensor, width: int) -> Tensor:
    return x.tape.new(x.rows, width, x.itemsize)


def order_by_expert(indices: Tensor) -> tuple[Tensor, Tensor]:
    """``sort(expert ids)``: sorted ids and the permutation."""
    return indices.tape.like(indices, LONG), indices.tape.like(indices, LONG)


def histogram(sorted_ids: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """The ids as int32, tokens per expert and their running sum."""
    tape = sorted_ids.tape
    narrow = tape.like(sorted_ids, INTEGER)
    counts = tape.new("1", experts, INTEGER)
    return narrow, counts, tape.new("1", experts, INTEGER)


def inverse(permutation: Tensor) -> Tensor:
    """The inverse permutation, filled from a range."""
    tape = permutation.tape
    out = tape.like(permutation)
    numbers = tape.like(permutation)
    del numbers
    return out


def complement(mask: Tensor) -> Tensor:
    """``~mask.bool()``."""
    tape = mask.tape
    plain = tape.like(mask, BOOL)
    out = tape.like(mask, BOOL)
    del plain
    return out
