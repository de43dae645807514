"""The tensors that train: what gradients, optimizer states and master copies are made of."""

from typing import NamedTuple

from estimator.architecture import Inventory, Weight
from estimator.step.adapters import targeted
from estimator.step.model import itemsize_of
from estimator.step.program import rounded
from estimator.step.regime import Regime


class Trainable(NamedTuple):
    """``count`` tensors of one shape; ``itemsize`` bytes per element. ``hidden`` marks matrices inside the layers."""

    shape: tuple[int, ...]
    itemsize: int
    count: int
    hidden: bool
    adapter: bool

    @property
    def numel(self) -> int:
        """Elements of one of them."""
        elements = 1
        for size in self.shape:
            elements *= size
        return elements


def trainables(inventory: Inventory, regime: Regime) -> list[Trainable]:
    """Every trainable tensor of a run, alike ones counted together."""
    if not regime.training:
        return []
    found: dict[Trainable, int] = {}
    for weight, count, layer in _all(inventory, regime):
        for tensor in _of(weight, layer, regime):
            found[tensor] = found.get(tensor, 0) + count
    return [tensor._replace(count=count) for tensor, count in found.items()]


def _all(inventory: Inventory, regime: Regime) -> list[tuple[Weight, int, bool]]:
    total = len(inventory.layers)
    first = total - regime.trainable_layers if regime.trainable == "last" else 0
    counts: dict[int, int] = {}
    for kind in inventory.layers[first:]:
        counts[kind] = counts.get(kind, 0) + 1
    rows = [(weight, count, True) for kind, count in counts.items() for weight in inventory.kinds[kind].weights]
    if regime.trainable == "all":
        rows += [(weight, 1, False) for weight in inventory.stem]
    if regime.trainable in ("all", "last"):
        rows += [(weight, 1, False) for weight in inventory.top]
    return rows if regime.trainable != "none" else [row for row in rows if row[2]]


def _of(weight: Weight, layer: bool, regime: Regime) -> list[Trainable]:
    if regime.trainable != "none":
        return [Trainable(weight.shape, itemsize_of(weight, regime), 0, layer and len(weight.shape) > 1, False)]
    adapter = regime.adapter
    name = weight.name.removesuffix(".weight")
    if adapter is None or weight.role != "linear" or not targeted(adapter.targets, name):
        return []
    outputs, inputs = weight.shape
    shapes = [(adapter.rank, inputs), (outputs, adapter.rank)] + ([(outputs,)] if adapter.dora else [])
    return [Trainable(shape, adapter.itemsize, 0, len(shape) > 1, True) for shape in shapes]


def bytes_of(tensors: list[Trainable]) -> int:
    """Bytes of one copy, each tensor in its block."""
    return sum(tensor.count * rounded(tensor.numel * tensor.itemsize) for tensor in tensors)
