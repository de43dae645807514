"""Storages, tensors, parameters, and the nodes and edges of the backward graph that a ``Tape`` records."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from estimator.step.tape import Tape

HALF, FULL = 2, 4
LONG = 8
BOOL = 1

Rows = str | tuple[Any, ...]
"""A row count: a name that ``program.rows_of`` knows, or a tuple such as ("min", "T", 4096)."""

ONE_QUERY: dict[Rows, str] = {"ss": "sK", "bss": "bsK", "bss8": "bsK8"}
"""Row counts of queries by keys in a decode step, where one query meets all cached keys."""


def one_query(rows: Rows, windowed: bool) -> Rows:
    """A row count as a decode step has it; ``windowed`` when the keys are those of a sliding window."""
    if isinstance(rows, tuple):
        return tuple(one_query(part, windowed) if part in ONE_QUERY else part for part in rows)
    rows = ONE_QUERY.get(rows, rows)
    return rows.replace("K", "W") if windowed else rows


class Storage:
    """Bytes of one allocation, alive as long as something refers to it."""

    __slots__ = ("events", "index")

    def __init__(self, events: list[int], index: int) -> None:
        self.events = events
        self.index = index
        events.append(index)

    def __del__(self) -> None:
        self.events.append(~self.index)


class Tensor:
    """A view of a storage: ``rows`` x ``width`` elements of ``itemsize`` bytes."""

    __slots__ = ("itemsize", "needs", "node", "rows", "slot", "storage", "tape", "width")

    def __init__(self, tape: "Tape", storage: Storage | None, rows: Rows, width: int, itemsize: int) -> None:
        self.tape = tape
        self.storage = storage
        self.rows = rows
        self.width = width
        self.itemsize = itemsize
        self.needs = False
        self.node: Node | None = None
        self.slot = 0

    def view(self, rows: Rows | None = None, width: int | None = None) -> "Tensor":
        """The same storage in another shape; the gradient takes the same way."""
        out = Tensor(self.tape, self.storage, self.rows if rows is None else rows, width or self.width, self.itemsize)
        out.needs, out.node, out.slot = self.needs, self.node, self.slot
        return out

    def detach(self) -> "Tensor":
        """The same storage outside the graph."""
        return Tensor(self.tape, self.storage, self.rows, self.width, self.itemsize)


class Leaf(Tensor):
    """A parameter (or an input that wants a gradient); its weights are counted outside the tape."""

    __slots__ = ("gradient", "is_parameter", "name", "quantised", "shape", "uses", "waiting")

    def __init__(self, tape: "Tape", width: int, itemsize: int, needs: bool, name: str = "") -> None:
        super().__init__(tape, None, "1", width, itemsize)
        self.needs = needs and tape.grad_enabled
        self.name = name
        self.shape: tuple[int, ...] = (width,)
        self.is_parameter = True
        self.quantised: str | None = None
        self.uses = 0
        self.waiting: Tensor | None = None
        self.gradient: Tensor | None = None


Backward = Callable[..., Sequence[Tensor | None]]
Edge = tuple[Rows, int, int, "Node | None", int, Leaf | None]
"""Where a gradient goes, and the shape and type that it must have there: rows, width, item size, node, slot, leaf."""


def edge_to(tensor: Tensor) -> Edge:
    """The edge to what made a tensor, or to the leaf that it is."""
    node, leaf = tensor.node, None
    if node is None:
        assert isinstance(tensor, Leaf)
        tensor.uses += 1
        leaf = tensor
    return tensor.rows, tensor.width, tensor.itemsize, node, tensor.slot, leaf


class Node:
    """One step of the backward: what it keeps, where its gradients go, and what it does."""

    __slots__ = ("backward", "hook", "in_place", "inputs", "order", "outputs", "saved", "segment")

    def __init__(self, order: int, segment: int, inputs: Sequence[Tensor], saved: Sequence[Any], backward: Backward):
        self.order = order
        self.segment = segment
        edges: list[Edge | None] = []
        for tensor in inputs:
            edges.append(edge_to(tensor) if tensor.needs else None)
        self.inputs: Sequence[Edge | None] = edges
        self.saved: Sequence[Any] | None = saved
        self.backward = backward
        self.outputs = 1
        self.in_place = False
        self.hook: Callable[[], None] | None = None


class StopReplay(Exception):
    """Everything that the backward needs has been computed again."""


class Frame:
    """A checkpointed region: what it saved is dropped, and made again when first asked for.

    ``dropped`` are weak references: what nothing asks for any more (a graph that was thrown away) is not kept again.
    """

    __slots__ = ("arguments", "cache", "call", "count", "dropped", "held", "kept", "made")

    def __init__(self, call: Callable[..., Tensor], arguments: tuple[Any, ...]) -> None:
        self.call = call
        self.arguments = arguments
        self.dropped: list[ref[Dropped]] = []
        self.cache: deque[Storage | None] = deque()
        self.made: dict[str, int] = {}
        self.held: list[Any] = []
        self.count = 0
        self.kept: dict[int, Any] | None = None


class Dropped:
    """Stands for a saved tensor of a checkpointed region."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index


class Offloaded:
    """Stands for a saved tensor that waits in host memory; a copy comes back when it is asked for."""

    __slots__ = ("item", "itemsize", "needs", "rows", "width")

    def __init__(self, tensor: Tensor, item: str) -> None:
        self.rows, self.width, self.itemsize, self.item = tensor.rows, tensor.width, tensor.itemsize, item
        self.needs = tensor.needs
