"""Kinds of gradient checkpointing: which layers, what is kept of them, and how they run again.

PyTorch 2.13 (torch/utils/checkpoint.py: non-reentrant in ``Tape.checkpoint``, the reentrant ``CheckpointFunction``
here), torchtitan's per-operator policy (keeps attention and every second ``mm``), Megatron's core-attention recompute,
unsloth's inputs in host memory.
"""

from collections.abc import Callable, Sequence
from functools import partial

from estimator.step.regime import Regime
from estimator.step.tape import Leaf, Tape, Tensor

Call = Callable[..., Tensor]


def prepare(tape: Tape, regime: Regime) -> None:
    """Set the tape up for the run's kind of checkpointing."""
    if regime.checkpointing == "selective-op":
        tape.keeps = per_operator
    if regime.checkpointing == "selective-attention":
        tape.core = partial(core_attention, tape)
    tape.offloads = regime.offload_saved
    tape.fused = regime.fused


def core_attention(tape: Tape, call: Call, *arguments: Tensor) -> Tensor:
    """Megatron's recompute of the attention kernel alone: queries, keys and values are kept, the rest is made again."""

    def once(*inputs: Tensor) -> Tensor:
        outer, tape.core = tape.core, None
        out = call(*inputs)
        tape.core = outer
        return out

    return rerun(tape, once, *arguments)


def per_operator(kind: str, number: int) -> bool:
    """Torchtitan's policy: results of attention kernels and of every second matrix product are kept."""
    return kind == "attention" or (kind == "mm" and number % 2 == 1)


def wanted(regime: Regime, index: int) -> bool:
    """Whether layer ``index`` is checkpointed; of N layers the last (torchtitan, torchtune)."""
    if regime.checkpointing == "every":
        return (index + 1) % regime.every == 0
    return regime.checkpointing in ("full", "offload", "selective-op")


def checkpointed(tape: Tape, regime: Regime, call: Call, x: Tensor) -> Tensor:
    """``call(x)`` as one checkpointed region."""
    offload = regime.checkpointing == "offload" or regime.offload_saved
    if regime.reentrant and regime.checkpointing != "selective-op":
        return rerun(tape, call, x, offload=offload)
    return tape.checkpoint(call, x, offload=offload)


def rerun(tape: Tape, call: Call, *arguments: Tensor, offload: bool = False) -> Tensor:
    """A reentrant checkpoint: no graph in the forward; the backward runs it again, and its own backward inside."""
    if not any(x.needs for x in arguments):
        return call(*arguments)
    tape.recording, outer = False, tape.recording
    out = call(*arguments)
    tape.recording = outer
    shapes = [(x.rows, x.width, x.itemsize) for x in arguments]
    held = [None if offload else x.storage for x in arguments]

    def backward(gradient: Tensor) -> Sequence[Tensor | None]:
        again, pinned = (tape.item, tape.casts, tape.scope, tape.autocast), tape.pinned
        tape.pinned = []
        tape.item, tape.casts, tape.autocast = "recompute", {}, tape.replay_autocast
        inputs = [_input(tape, shape, storage) for shape, storage in zip(shapes, held, strict=True)]
        tape.rerunning = True
        result = call(*inputs)
        tape.rerunning = False
        tape.item, tape.casts, tape.scope, tape.autocast = again
        tape.backward_from(result, gradient)
        tape.pinned = pinned
        for kept in tape.trapped:
            tape.pin(kept)
        tape.trapped.clear()
        return [leaf.gradient for leaf in inputs]

    tape.pin(call)
    return tape.attach(Tensor(tape, out.storage, out.rows, out.width, out.itemsize), arguments, (), backward)


def _input(tape: Tape, shape: tuple, storage: object) -> Leaf:  # type: ignore[type-arg]
    rows, width, itemsize = shape
    leaf = Leaf(tape, width, itemsize, True)
    leaf.rows, leaf.is_parameter = rows, False
    leaf.storage = storage if storage is not None else tape.new(rows, width, itemsize).storage  # type: ignore[assignment]
    return leaf
