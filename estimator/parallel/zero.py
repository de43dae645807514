"""DeepSpeed's ZeRO 1 and 2: gradients go through a bucket into one rank's partition.

deepspeed 0.19.8, runtime/zero/stage_1_and_2.py. Parameters are laid end to end and dealt out; the first rank optimises
the first part: embedding and lower layers. A gradient that fits the bucket is copied there as soon as it is complete;
a larger one lives until the next arrives. Stage 1 does all of this when the backward is over.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from estimator.architecture import Inventory
from estimator.parallel.layout import Layout
from estimator.parallel.units import Ledger
from estimator.step.model import Layer, Model
from estimator.step.program import rounded
from estimator.step.regime import Regime
from estimator.step.runtime import Runtime, behind
from estimator.step.tape import HALF, Leaf, Tape, Tensor
from estimator.trainables import Group, ordered


class Partition(NamedTuple):
    """The first rank's part. Elements: of all that trains, of the part, of every parameter that reaches into it.

    ``border``: the layer in whose backward a bucket with gradients of the part is first reduced (-1: the embedding's,
    None: only when the backward is over). ``pieces``: elements of each parameter inside. ``layers``: bytes of each
    layer's gradients.
    """

    total: int
    size: int
    touched: int
    border: int | None
    pieces: tuple[int, ...]
    layers: tuple[int, ...]


def partition_of(parts: Inventory, regime: Regime, shards: int, bucket: int) -> Partition:
    """How the trainable parameters, in the model's order, fall on the first rank."""
    return _partition(ordered(parts, regime), regime.trainable == "all", len(parts.layers), shards, bucket)


@lru_cache(maxsize=256)
def _partition(groups: tuple[Group, ...], ends: bool, layers: int, shards: int, bucket: int) -> Partition:
    """``ends``: the first and the last group lie outside the ``layers``."""
    flat: list[tuple[int, int]] = []
    held_by: dict[int, int] = {}
    for layer, sizes, held in _in_order(groups, ends):
        flat += [(layer, size) for size in sizes]
        held_by[layer] = held
    total = sum(size for _, size in flat)
    part = -(-total // shards)
    pieces: list[int] = []
    touched = 0
    for _, size in flat:
        if touched >= part:
            break
        pieces.append(min(size, part - touched))
        touched += size
    inner = tuple(held_by.get(layer, 0) for layer in range(layers))
    return Partition(total, part, touched, _first_reduced(flat, len(pieces), bucket), tuple(pieces), inner)


def _first_reduced(flat: list[tuple[int, int]], own: int, bucket: int) -> int | None:
    """The layer whose gradient pushes out the first bucket that holds one of the first ``own`` parameters'."""
    filled, number = 0, len(flat)
    holds = False
    for layer, size in reversed(flat):
        number -= 1
        if filled + size > bucket:
            if holds:
                return layer
            filled = 0
        filled += size
        holds = holds or number < own
    return None


def _in_order(groups: tuple[Group, ...], ends: bool) -> Iterable[tuple[int, list[int], int]]:
    """Of every layer (-1 outside): its number, the elements of each of its tensors, bytes of all their gradients."""
    layer = 0
    for number, (times, tensors) in enumerate(groups):
        sizes = [tensor.numel for tensor in tensors]
        held = sum(rounded(tensor.bytes) for tensor in tensors)
        outside = ends and number in (0, len(groups) - 1)
        for _ in range(times):
            yield -1 if outside else layer, sizes, held
            layer += 0 if outside else 1


class Zero12(Runtime):
    """The runtime of the first rank."""

    reduces = True

    def __init__(self, tape: Tape, layout: Layout, partition: Partition, accumulates: bool) -> None:
        self.tape = tape
        self.ledger = Ledger(tape)
        self.zero = layout.zero
        self.bucket = layout.bucket
        self.partition = partition
        self.own = partition.touched * HALF if layout.states_on == "none" else 0
        """Bytes of the part's gradients on the card."""
        self.accumulates = accumulates
        self.waiting: Leaf | None = None
        """A gradient larger than the bucket, until the next one arrives."""
        self.started = self.allocated = False
        self.held: set[int] = set()
        self.model: Model | None = None

    def neighbours(self, index: int) -> tuple[object, ...]:
        """The layer in which the rank's part ends is one of its own."""
        return (self.zero == 2 and index == self.partition.border, self.partition.layers[index])

    def begin(self, model: Model) -> None:
        """Gradients of earlier micro-steps wait in a partition."""
        self.model = model
        if self.accumulates:
            self.ledger.take(self.own, "gradients")
        if self.zero == 2:
            self.tape.on_gradient = self.arrived

    def before_layer(self, layer: Layer, x: Tensor) -> Tensor:
        """Behind the backward of the layer in which the part ends, the partition is there; stage 1 keeps everything."""
        if self.zero == 1:
            return behind(x, lambda: self._hold(layer))
        return behind(x, self._own) if layer.index == self.partition.border else x

    def arrived(self, leaf: Leaf) -> None:
        """A gradient is complete."""
        if not self.started:
            self.started = True
            self.ledger.take(self.bucket * HALF)
        self._flush()
        if self.partition.border == -1 and self.model is not None and leaf in self.model.stem.leaves.values():
            self._own()
        if leaf.width > self.bucket:
            self.waiting = leaf
        else:
            leaf.gradient = Leaf(self.tape, leaf.width, leaf.itemsize, False)

    def after_backward(self) -> None:
        """The rest is reduced; the bucket goes, one rank's part stays."""
        model = self.model
        assert model is not None
        if self.zero == 1:
            for layer in model.layers[:1]:
                self._hold(layer)
            self.ledger.take(self.bucket * HALF)
        self._own()
        self._flush()
        for size in self.partition.layers if self.zero == 1 else ():
            self.ledger.give(size, "gradients")
        for layer in (model.stem, model.top, *model.layers):
            _drop(layer)
        self.ledger.give(self.bucket * HALF)
        if self.accumulates:
            self.ledger.give(self.own, "gradients")

    def _hold(self, layer: Layer) -> None:
        if layer.index not in self.held:
            self.held.add(layer.index)
            _drop(layer)
            self.ledger.take(self.partition.layers[layer.index], "gradients")

    def _flush(self) -> None:
        if self.waiting is not None:
            self.waiting.gradient, self.waiting = None, None

    def _own(self) -> None:
        if not self.allocated:
            self.allocated = True
            self.ledger.take(self.own, "gradients")


def _drop(layer: Layer) -> None:
    for leaf in layer.leaves.values():
        leaf.gradient = None
