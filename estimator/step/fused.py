"""Fused kernels in place of a model's own code: Liger 0.8.5's norm, rotary embedding and gated activation.

Read in liger_kernel/ops (rms_norm.py, rope.py, swiglu.py): the norm keeps its input and a reciprocal root per row and
writes its gradient over the incoming one; the rotation works in place; the gated activation keeps both inputs and
writes their gradients over them.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.tape import FULL, Leaf, Tensor

PROGRAMS = 108
"""Partial weight gradients of the norm, one per multiprocessor (A100; 82 on a 3090, 132 on an H100)."""


class Gate(Tensor):
    """The gate of a fused gated activation: nothing is computed until it meets the other half."""

    __slots__ = ()


class Product(Tensor):
    """The result of a fused gated activation: unsloth makes it again instead of keeping it."""

    __slots__ = ()


def gate_of(x: Tensor) -> Gate:
    """``x`` as the gate of a fused product."""
    gate = Gate(x.tape, x.storage, x.rows, x.width, x.itemsize)
    gate.needs, gate.node, gate.slot = x.needs, x.node, x.slot
    return gate


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """``act(gate) * up`` in one kernel."""
    tape = gate.tape
    needed = gate.needs or up.needs
    made = tape.like(gate)
    out = Product(tape, made.storage, made.rows, made.width, made.itemsize)
    del made
    if not needed:
        return out
    kept = [tape.save(gate), tape.save(up)]
    shapes = [ops.shape_of(t) for t in (gate, up)]

    def backward(g: Tensor, *storages: object) -> Sequence[Tensor | None]:
        return [Tensor(tape, storage, *shape) for storage, shape in zip(storages, shapes, strict=True)]  # type: ignore[arg-type]

    return tape.attach_in_place(out, (gate, up), kept, backward)


def rms_norm(x: Tensor, weight: Leaf, groups: int = 1, *, in_place: bool = True) -> Tensor:
    """The norm over the whole width, or over each of ``groups`` heads."""
    tape = x.tape
    kept = [tape.save(x), tape.save(weight)] if x.needs or weight.needs else []
    out = tape.like(x)
    roots = tape.new(x.rows, groups, FULL)
    if not kept:
        return out
    kept.append(tape.save(roots))
    rows, width, size = ops.shape_of(x)
    elements, weight_size, trains = weight.width, weight.itemsize, weight.needs

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        partial = tape.new("1", PROGRAMS * elements, FULL) if trains else None
        result = g if in_place else tape.new(rows, width, size)
        total = None
        if trains:
            total = ops.cast(tape.new("1", elements, FULL, "gradients"), weight_size)
        del partial
        return result, total

    return tape.attach(out, (x, weight), kept, backward)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries or keys turned where they lie; only the tables are kept."""
    tape = x.tape
    out = Tensor(tape, x.storage, x.rows, x.width, x.itemsize)
    if not x.needs:
        return out
    return tape.attach(out, (x,), [tape.save(cos), tape.save(sin)], lambda g: (g,))
