"""Tensors without values: a step run on them leaves the list of its allocations and frees.

A family's forward code runs once on shapes. Storages report their birth and death to the tape, operations attach
nodes that know what they keep and what their backward allocates, and ``Tape.backward`` walks them as PyTorch's engine
does (highest sequence number first, leaf gradients at once). Sizes stay symbolic: a storage is a coefficient in bytes
times a row count ("T" = batch x length, "bss" = batch x length x length …), so one trace serves every batch and length.

Rules of lifetime: torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.h (PyTorch 2.13),
torch/utils/checkpoint.py for non-reentrant checkpointing with early stop.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from typing import Any
from weakref import ref

from estimator.step.graph import (
    BOOL,
    FULL,
    HALF,
    LONG,
    Backward,
    Dropped,
    Edge,
    Frame,
    Leaf,
    Node,
    Offloaded,
    Rows,
    StopReplay,
    Storage,
    Tensor,
    edge_to,
    one_query,
)

Waiting = dict[int, tuple[Node, list[Tensor | None]]]
"""Nodes by their order with the gradients that have come for each of their results."""

__all__ = ["BOOL", "FULL", "HALF", "LONG", "Leaf", "Rows", "Tape", "Tensor"]


class Tape:
    """Records one step. ``events`` holds storage indices, a free as the complement of its index."""

    def __init__(self, *, autocast: bool = False, merge_in_place: bool = False) -> None:
        self.events: list[int] = []
        self.kinds: list[tuple[Rows, int, str, str]] = []
        self.index_of: dict[tuple[Rows, int, str, str], int] = {}
        self.marks: list[tuple[int, str, int]] = []
        self.item = "activations"
        self.scope = ""
        self.segment = 0
        self.order = 0
        self.grad_enabled = True
        self.autocast = autocast
        self.replay_autocast = autocast
        self.casts: dict[int, tuple[Leaf, Tensor, int]] = {}
        self.frame: Frame | None = None
        self.merge_in_place = merge_in_place
        self.recording = True
        self.fused: tuple[str, ...] = ()
        self.offloads = False
        self.keeps: Callable[[str, int], bool] | None = None
        self.core: Callable[..., Tensor] | None = None
        self.pinned: list[tuple[int, Any]] = []
        self.rerunning = False
        """Whether a reentrant checkpoint makes its forward again."""
        self.trapped: list[Any] = []
        """What such a forward's hooks keep until the end of the backward."""
        self.on_gradient: Callable[[Leaf], None] | None = None
        self.keeps_casts = True
        """Whether autocast caches copies of trainable leaves: not of those that FSDP1 hands out, which are views."""
        self.single = True
        self.stage = ""
        self.windowed = False
        self.caches = False
        self.whole_cache = False

    def new(self, rows: Rows, width: int, itemsize: int, item: str = "") -> Tensor:
        """Allocate ``rows`` x ``width`` elements of ``itemsize`` bytes."""
        counted = self._counted(rows) if self.stage or self.whole_cache else rows
        key = counted, width * itemsize, item or self.item, self.scope
        index = self.index_of.get(key)
        if index is None:
            index = self.kind(*key)
        return Tensor(self, Storage(self.events, index), rows, width, itemsize)

    def _counted(self, rows: Rows) -> Rows:
        """A row count as a decode step has it."""
        if self.stage:
            return self.stage, one_query(rows, self.windowed)
        return rows if self.windowed else one_query(rows, False)

    def kind(self, rows: Rows, size: int, item: str, scope: str = "") -> int:
        """The number of the kind of allocations with ``size`` bytes per row."""
        key = (rows, size, item, scope)
        index = self.index_of.get(key)
        if index is None:
            index = self.index_of[key] = len(self.kinds)
            self.kinds.append(key)
        return index

    @property
    def replaying(self) -> bool:
        """Whether a checkpointed region runs again."""
        return self.frame is not None and self.frame.kept is not None

    def like(self, tensor: Tensor, itemsize: int = 0, item: str = "") -> Tensor:
        """Allocate a tensor of the same shape."""
        return self.new(tensor.rows, tensor.width, itemsize or tensor.itemsize, item)

    def mark(self, phase: str) -> None:
        """Begin a segment of the timeline: ``phase`` with the current layer number."""
        self.marks.append((len(self.events), phase, self.segment))

    def save(self, tensor: Tensor | None) -> Any:
        """Keep a tensor for the backward; inside a checkpointed region it is dropped and made again."""
        frame = self.frame
        if tensor is None or not self.recording:
            return None
        if frame is None:
            return Offloaded(tensor, self.item) if self.offloads else tensor.storage
        if frame.kept is None:
            dropped = Dropped(frame, len(frame.dropped))
            frame.dropped.append(ref(dropped))
            return dropped
        if frame.dropped[frame.count]() is not None:
            frame.kept[frame.count] = tensor.storage
        frame.count += 1
        if frame.count == len(frame.dropped):
            raise StopReplay
        return tensor.storage

    def attach(self, out: Tensor, inputs: Sequence[Tensor], saved: Sequence[Any], backward: Backward) -> Tensor:
        """Make ``out`` the result of a differentiable operation; ``backward(grad)`` gives a gradient per input."""
        if self.grad_enabled and self.recording:
            out.needs = True
            if self.frame is None or self.frame.kept is None:
                self.order += 1
                out.node = Node(self.order, self.segment, inputs, saved, backward)
        return out

    def attach_in_place(
        self, out: Tensor, inputs: Sequence[Tensor], saved: Sequence[Any], backward: Backward
    ) -> Tensor:
        """As ``attach`` for a backward that writes over what was saved: it is given those storages too."""
        self.attach(out, inputs, saved, backward)
        if out.node is not None:
            out.node.in_place = True
        return out

    def attach_many(
        self, outs: Sequence[Tensor], inputs: Sequence[Tensor], saved: Sequence[Any], backward: Backward
    ) -> None:
        """As ``attach`` for an operation with several results; ``backward`` takes a gradient (or None) for each."""
        self.attach(outs[0], inputs, saved, backward)
        node = outs[0].node
        if node is not None:
            node.outputs = len(outs)
        for slot, out in enumerate(outs):
            out.needs, out.node, out.slot = outs[0].needs, node, slot

    @contextmanager
    def inside(self, scope: str) -> Iterator[None]:
        """Name the part of the layer that allocations belong to."""
        outer, self.scope = self.scope, scope
        yield
        self.scope = outer

    def end_autocast(self, piece: str = "release") -> None:
        """Leave autocast: the cached casts go, those of each layer in a segment of its own."""
        for segment in sorted({number for _, _, number in self.casts.values()}):
            self.segment = segment
            self.mark(piece)
            self.casts = {key: entry for key, entry in self.casts.items() if entry[2] != segment}
        self.autocast = False

    def pin(self, held: Any) -> None:
        """Keep what an autograd function's context holds outside its saved tensors: it lives as long as the graph."""
        if self.frame is not None and self.frame.kept is not None:
            self.frame.held.append(held)
        elif self.recording:
            self.pinned.append((self.segment, held))

    def unpin(self) -> None:
        """The graph goes: what was pinned, that of each layer in a segment of its own."""
        for segment in sorted({number for number, _ in self.pinned}):
            self.segment = segment
            self.mark("unpin")
            self.pinned = [entry for entry in self.pinned if entry[0] != segment]

    def result(self, kind: str, rows: Rows, width: int, itemsize: int) -> Tensor:
        """The result of an operation that selective checkpointing may keep (``keeps`` by kind and number)."""
        frame = self.frame
        if frame is None or self.keeps is None:
            return self.new(rows, width, itemsize)
        number = frame.made[kind] = frame.made.get(kind, 0) + 1
        if not self.keeps(kind, number):
            return self.new(rows, width, itemsize)
        if frame.kept is not None:
            return Tensor(self, frame.cache.popleft(), rows, width, itemsize)
        out = self.new(rows, width, itemsize)
        frame.cache.append(out.storage)
        return out

    def checkpoint(self, call: Callable[..., Tensor], *arguments: Tensor, offload: bool = False) -> Tensor:
        """Run ``call`` keeping only its arguments (``offload``: in host memory); the backward runs it again."""
        kept: tuple[Any, ...] = tuple(Offloaded(x, self.item) for x in arguments) if offload else arguments
        frame = Frame(call, kept)
        self.frame = frame
        out = call(*arguments)
        self.frame = None
        return out

    def replay(self, frame: Frame) -> None:
        """Run a checkpointed region again, up to the last tensor that its backward asks for."""
        outer = self.item, self.casts, self.scope, self.autocast
        self.item, self.casts, self.autocast = "recompute", {}, self.replay_autocast
        frame.kept, frame.count, frame.made = {}, 0, {}
        arguments = [self.returned(x) if isinstance(x, Offloaded) else x for x in frame.arguments]
        self.frame = frame
        with suppress(StopReplay):
            frame.call(*arguments)
        frame.held.clear()
        self.frame = None
        self.item, self.casts, self.scope, self.autocast = outer

    def backward(self, root: Tensor) -> None:
        """Run the backward from ``root``, whose gradient is a new tensor of its shape."""
        self.backward_from(root, self.like(root))

    def backward_from(self, root: Tensor, seed: Tensor) -> None:
        """Run the backward from ``root`` with the gradient ``seed``."""
        assert root.node is not None
        waiting: Waiting = {}
        queue: list[int] = []
        self._hand(edge_to(root), seed, waiting, queue)
        root.node = None
        while queue:
            node, grads = waiting.pop(-heappop(queue))
            if node.segment != self.segment:
                self.segment = node.segment
                self.mark("backward")
            self._run(node, grads, waiting, queue)

    def _run(self, node: Node, grads: list[Tensor | None], waiting: Waiting, queue: list[int]) -> None:
        """Backward of one node: what was made again goes first, then sums and casts, the gradient, the rest."""
        if node.hook is not None:
            node.hook()
        if node.saved:
            remade = self._remake(node.saved)
            outs = node.backward(*grads, *remade) if node.in_place else node.backward(*grads)
            del remade
        else:
            outs = node.backward(*grads)
        edges = node.inputs
        node.inputs = ()
        results: list[Tensor | None] = list(outs)
        del outs
        for position, edge in enumerate(edges):
            grad = results[position]
            if edge is None:
                results[position] = None
            elif grad is not None and (grad.width != edge[1] or grad.itemsize != edge[2] or grad.rows != edge[0]):
                results[position] = self._fitted(edge, grad)
            del grad
        grads.clear()
        node.saved = None
        node.backward = _gone
        del node
        for position, edge in enumerate(edges):
            result = results[position]
            results[position] = None
            if edge is not None and result is not None:
                self._hand(edge, result, waiting, queue)

    def _fitted(self, edge: Edge, grad: Tensor) -> Tensor:
        """Sum a broadcast gradient to its input's shape, then cast it to its type."""
        rows, width, itemsize, *_ = edge
        item = "gradients" if rows == "1" else ""
        if grad.rows != rows or grad.width != width:
            grad = self.new(rows, width, grad.itemsize, item)
        if grad.itemsize != itemsize:
            grad = self.new(rows, width, itemsize, item)
        return grad

    def _remake(self, saved: Sequence[Any]) -> list[Any]:
        """What a node kept, run again or brought back where it was let go."""
        for kept in saved:
            if isinstance(kept, Dropped) and kept.frame.kept is None:
                self.replay(kept.frame)
        return [self._unpack(kept) for kept in saved]

    def returned(self, kept: Offloaded) -> Tensor:
        """The copy of an offloaded tensor on the card."""
        copy = self.new(kept.rows, kept.width, kept.itemsize, kept.item)
        copy.needs = kept.needs
        return copy

    def _unpack(self, kept: Any) -> Any:
        if isinstance(kept, Offloaded):
            return self.returned(kept).storage
        if isinstance(kept, Dropped):
            assert kept.frame.kept is not None
            return kept.frame.kept.pop(kept.index)
        return kept

    def _hand(self, edge: Edge, grad: Tensor, waiting: Waiting, queue: list[int]) -> None:
        _, _, _, node, slot, leaf = edge
        if leaf is not None:
            self._accumulate(leaf, grad)
            return
        assert node is not None
        order = node.order
        entry = waiting.get(order)
        if entry is None:
            entry = waiting[order] = (node, [None] * node.outputs)
            heappush(queue, -order)
        held = entry[1]
        held[slot] = grad if held[slot] is None else self._merge(held[slot], grad)

    def _merge(self, old: Tensor | None, new: Tensor) -> Tensor:
        if old is None:
            return new
        if self.merge_in_place:
            return old
        return self.like(old if old.width >= new.width else new, item="gradients" if old.rows == "1" else "")

    def _accumulate(self, leaf: Leaf, grad: Tensor) -> None:
        leaf.waiting = self._merge(leaf.waiting, grad)
        leaf.uses -= 1
        if leaf.uses == 0:
            if self.on_gradient is not None and leaf.is_parameter:
                self.on_gradient(leaf)
            if leaf.gradient is None:
                leaf.gradient = leaf.waiting
            leaf.waiting = None


def _gone(*_: Any) -> Sequence[Tensor | None]:
    raise RuntimeError("this node has run already")
