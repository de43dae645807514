"""Follows every storage of one device from its allocation to its release, by category and by phase of the step."""

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bot.tracing.scratch import scratch_of

aten = torch.ops.aten
BLOCK = 512
"""The CUDA caching allocator hands out multiples of this many bytes."""
DEVICE = "cuda"


def rounded(size: int) -> int:
    """Bytes of the block that holds ``size`` bytes."""
    return -(-size // BLOCK) * BLOCK


class High(NamedTuple):
    """The most bytes that were alive in a phase, and what they were for."""

    bytes: int
    items: dict[str, int]


@dataclass(slots=True)
class Record:
    """A storage that is alive."""

    bytes: int
    item: str
    storage: "weakref.ref[Any]"


class Tracker(TorchDispatchMode):
    """Counts live storages; items are those of ``estimator.schema.Item``.

    ``logits``: numbers of elements of a tensor with an entry for every token and word. The order of destruction of
    fake tensors is Python's reference counting, the same as for real ones.
    """

    def __init__(self, vocab: int = 0, logits: Iterable[int] = ()) -> None:
        super().__init__()
        self.vocab, self.logits = vocab, frozenset(logits)
        self.live: dict[int, Record] = {}
        self.alive = 0
        self.items: Counter[str] = Counter()
        self.highs: dict[tuple[int, str], High] = {}
        self.step, self.phase = 0, "load"
        self.backward = False

    def enter(self, phase: str) -> None:
        """What happens from here on belongs to ``phase``."""
        self.phase = phase
        self._mark()

    def tag(self, tensor: Any, item: str, only: str | None = None) -> None:
        """Say what a tensor is for; with ``only``, if it has been taken for that so far."""
        if tensor.device.type != DEVICE:
            return
        if (record := self._record(tensor)) is None:
            self._add(tensor, item)
            self._mark()
        elif only is None or record.item == only:
            self._move(record, item)

    def keep(self) -> None:
        """What outlives the forward is kept for the backward."""
        for record in self.live.values():
            if record.item == "other":
                self._move(record, "activations")

    def item_of(self, tensor: Any) -> str | None:
        """What a tensor has been taken for."""
        record = self._record(tensor)
        return record.item if record else None

    def _move(self, record: Record, item: str) -> None:
        self.items[record.item] -= record.bytes
        self.items[item] += record.bytes
        record.item = item

    def _record(self, tensor: Any) -> Record | None:
        storage = tensor.untyped_storage()
        record = self.live.get(storage._cdata)
        return record if record is not None and record.storage() is storage else None

    def _add(self, tensor: Any, item: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        record = Record(rounded(storage.nbytes()), item, weakref.ref(storage, self._freed(key)))
        self.live[key] = record
        self.alive += record.bytes
        self.items[item] += record.bytes

    def _freed(self, key: int) -> Callable[[Any], None]:
        def gone(_: Any) -> None:
            if (record := self.live.pop(key, None)) is not None:
                self.alive -= record.bytes
                self.items[record.item] -= record.bytes

        return gone

    def _mark(self, inside: int = 0) -> None:
        """Remember this moment if it is the fullest of its phase; ``inside``: bytes of a kernel that runs."""
        key, now = (self.step, self.phase), self.alive + inside
        if key not in self.highs or now > self.highs[key].bytes:
            items = dict(self.items)
            if inside:
                items["other"] = items.get("other", 0) + inside
            self.highs[key] = High(now, items)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and take its new storages into account."""
        if self.backward:  # the engine's thread too must make torch.tensor(…) on the device
            torch._C._set_only_lift_cpu_tensors(True)
        if func is aten._local_scalar_dense.default and self.phase == "optimizer_step":
            return False if args[0].dtype == torch.bool else 0.0  # GradScaler asks whether a gradient overflowed
        out = func(*args, **(kwargs or {}))
        fresh = False
        for tensor in (out,) if isinstance(out, torch.Tensor) else tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == DEVICE and self._record(tensor) is None:
                self._add(tensor, self._item(func, args, tensor))
                fresh = True
        if fresh:
            self._mark()
        if inside := scratch_of(func, args):
            self._mark(inside)
        return out

    def _item(self, func: Any, args: Any, tensor: Any) -> str:
        if tensor.dim() >= 2 and tensor.shape[-1] == self.vocab and tensor.numel() in self.logits:
            return "logits_loss"
        if func is aten._to_copy.default and self.item_of(args[0]) in ("weights", "adapter"):
            return "weight_casts"
        return "recompute" if self.backward and torch.is_grad_enabled() else "other"
