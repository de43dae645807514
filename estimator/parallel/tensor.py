"""Tensor and sequence parallel as DTensor runs them: Megatron's split of attention, MLP, embedding and head.

torch 2.13: torch/distributed/tensor/parallel/style.py (ColwiseParallel, RowwiseParallel, SequenceParallel), loss.py
(loss_parallel), _collective_utils.py: collectives make new tensors, and one along another dimension than the first
copies before a reduce-scatter and behind an all-gather. The plan is torchtitan's.
"""

from collections.abc import Sequence

from estimator.architecture import Architecture, Inventory, Weight
from estimator.parallel.layout import Layout
from estimator.step import ops
from estimator.step.tape import BOOL, FULL, LONG, Leaf, Rows, Tape, Tensor

COLUMNS = ("q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj")
"""Linears whose rows (output features) are dealt out."""
ROWS = ("o_proj", "down_proj")
"""Linears whose columns (input features) are dealt out; their results are sums over all ranks."""
ENDS = ("embedding", "head")


def ceil(value: int, by: int) -> int:
    """``value / by`` rounded up."""
    return -(-value // by)


def local_architecture(arch: Architecture, layout: Layout) -> Architecture:
    """The architecture as the layers of one rank see it; the vocabulary stays whole."""
    t = layout.tensor
    if t == 1:
        return arch
    return arch._replace(heads=arch.heads // t, kv_heads=arch.kv_heads // t, intermediate=arch.intermediate // t)


def local_inventory(parts: Inventory, layout: Layout) -> Inventory:
    """The first rank's piece of every parameter."""
    if layout.tensor == layout.expert == 1:
        return parts

    def each(weights: Sequence[Weight]) -> tuple[Weight, ...]:
        return tuple(weight._replace(shape=local_shape(weight, layout)) for weight in weights)

    kinds = tuple(kind._replace(weights=each(kind.weights)) for kind in parts.kinds)
    return parts._replace(stem=each(parts.stem), kinds=kinds, top=each(parts.top))


def local_shape(weight: Weight, layout: Layout) -> tuple[int, ...]:
    """The shape of the first rank's piece: norms and the biases of summed results are whole on every rank."""
    part, shape, t = weight.part.removesuffix(".bias"), weight.shape, layout.tensor
    if weight.role == "expert" and layout.expert > 1:
        shape = (ceil(shape[0], layout.expert), *shape[1:])
    if t == 1:
        return shape
    ends = part in ENDS and not layout.whole_ends
    if part in COLUMNS or ends:
        return (ceil(shape[0], t), *shape[1:])
    if part in ROWS and len(shape) > 1:
        return (shape[0], ceil(shape[1], t))
    return shape


class TensorParallel:
    """The operations that a rank adds around the parts of its layers."""

    def __init__(self, layout: Layout) -> None:
        self.size = layout.tensor
        self.sequence = layout.sequence
        self.loss_parallel = layout.loss_parallel
        self.whole_ends = layout.whole_ends
        self.rows: Rows = ("share", layout.tensor) if layout.sequence else "T"

    def enter(self, x: Tensor) -> Tensor:
        """What attention and MLP are handed: the whole sequence."""
        return self.gather(x) if self.sequence else x

    def before(self, x: Tensor, part: str) -> Tensor:
        """The input of a linear: the gradients of all ranks' columns are summed in the backward."""
        if part not in COLUMNS or self.sequence:
            return x
        return _summed_gradient(x)

    def after(self, out: Tensor, part: str) -> Tensor:
        """The result of a linear: sums over the ranks."""
        if part not in ROWS:
            return out
        return self.scatter(out) if self.sequence else _summed(out)

    def gather(self, x: Tensor) -> Tensor:
        """All-gather along the sequence; the backward reduces and scatters."""
        tape, share, width, size = x.tape, self.rows, x.width, x.itemsize
        out = _gathered(tape, "T", width, size)
        if not x.needs:
            return out

        def backward(_: Tensor) -> Sequence[Tensor | None]:
            return (_scattered(tape.new("T", width, size), share),)

        return tape.attach(out, (x,), (), backward)

    def scatter(self, x: Tensor) -> Tensor:
        """Reduce-scatter along the sequence; the backward gathers."""
        tape, width, size = x.tape, x.width, x.itemsize
        out = _scattered(tape.new("T", width, size), self.rows)
        if not x.needs:
            return out

        return tape.attach(out, (x,), (), lambda g: (_gathered(tape, "T", width, size),))

    def embedding(self, weight: Leaf, ids: Tensor, width: int, tied: bool) -> Tensor:
        """Rows of a vocabulary that is dealt out: foreign ids are masked, results summed."""
        tape, rows = weight.tape, ids.rows
        out = _masked_lookup(weight, ids, width)
        result = self.scatter(out.detach()) if self.sequence else _summed(out.detach())
        del out
        if not weight.needs:
            return result
        size, local, whole, share = weight.itemsize, weight.width, weight.width * self.size, self.sequence

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            gathered = _gathered(tape, rows, width, size) if share else g
            result = _partial_gradient(weight, local, whole, tied)
            del gathered
            return (result,)

        return tape.attach(result, (weight,), [tape.save(ids)], backward)

    def logits(self, hidden: Tensor, weight: Leaf, vocab: int) -> Tensor:
        """The head over the rank's part of the vocabulary, and the other parts gathered unless the loss is split."""
        from estimator.step.model import linear

        if self.whole_ends:
            return linear(hidden, weight, None, vocab)
        x = self.enter(hidden) if self.sequence else _summed_gradient(hidden)
        local = linear(x, weight, None, ceil(vocab, self.size))
        del x
        if self.loss_parallel:
            return local
        tape, part, size = local.tape, local.width, local.itemsize
        buffer = tape.new("T", part * self.size, size)
        out = tape.new("T", vocab, size)
        del buffer
        return tape.attach(out, (local,), (), lambda g: (tape.new("T", part, size),)) if local.needs else out


def _masked_lookup(weight: Leaf, ids: Tensor, width: int) -> Tensor:
    tape, rows = weight.tape, ids.rows
    sides = [tape.new(rows, 1, BOOL) for _ in range(2)]
    foreign = tape.new(rows, 1, BOOL)
    del sides
    clone = tape.new(rows, 1, LONG)
    local = tape.new(rows, 1, LONG)
    del clone
    out = tape.new(rows, width, weight.itemsize)
    del local, foreign
    return out


def _partial_gradient(weight: Leaf, local: int, whole: int, tied: bool) -> Tensor:
    """A gradient of the whole vocabulary's size on every rank; it meets the head's and shrinks, or stays."""
    tape, size = weight.tape, weight.itemsize
    full = tape.new("1", whole, size, "gradients").storage
    held: object = (full, tape.new("1", local, size, "gradients").storage) if tied else full
    return Tensor(tape, held, "1", local, size)  # type: ignore[arg-type]


def _gathered(tape: Tape, rows: Rows, width: int, size: int) -> Tensor:
    """All-gather, and the copy that puts what it gathered in order."""
    buffer = tape.new(rows, width, size)
    out = tape.new(rows, width, size)
    del buffer
    return out


def _summed(x: Tensor) -> Tensor:
    """All-reduce into a new tensor; the gradient passes as it is."""
    return ops.copy(x)


def _summed_gradient(x: Tensor) -> Tensor:
    """The same tensor, whose gradient is summed over the ranks into a new one."""
    return ops.fresh_gradient(x)


def _scattered(part: Tensor, rows: Rows) -> Tensor:
    """Reduce-scatter of ``part``, the reordered copy of its input."""
    return part.tape.new(rows, part.width, part.itemsize)


def split_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """``loss_parallel``: log-softmax over a vocabulary that is dealt out; its backward works on three such tensors."""
    tape, (rows, width, size) = logits.tape, ops.shape_of(logits)
    largest = tape.new(rows, 1, FULL)
    shifted = tape.new(rows, width, size)
    exponentials = tape.new(rows, width, size)
    total = tape.new(rows, 1, FULL)
    del exponentials
    scores = tape.new(rows, width, size)
    del shifted, largest, total
    loss, weight = tape.new("1", 1, FULL), tape.new("1", 1, FULL)

    def backward(_: Tensor) -> Sequence[Tensor | None]:
        zeros = tape.new(rows, width, size)
        exponentials = tape.new(rows, width, size)
        sums = tape.new(rows, width, size)
        del exponentials
        result = tape.new(rows, width, size)
        del sums, zeros
        return (result,)

    return tape.attach(loss, (logits,), [tape.save(t) for t in (scores, targets, weight)], backward)
