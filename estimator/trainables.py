"""The tensors that train: what gradients, optimizer states and master copies are made of."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import NamedTuple

from estimator.architecture import Inventory, Weight
from estimator.step.adapters import carries
from estimator.step.expert_adapters import rank_of
from estimator.step.model import itemsize_of
from estimator.step.program import rounded
from estimator.step.regime import AdapterRegime, Regime
from estimator.step.tape import FULL


class Trainable(NamedTuple):
    """``times`` tensors of one shape; ``itemsize`` bytes per element. ``hidden`` marks matrices inside the layers.

    ``name`` is the module and parameter inside the layer, empty where tensors of several names are counted together.
    An ``idle`` adapter is never run: it has no gradient, and so no optimizer states.
    """

    shape: tuple[int, ...]
    itemsize: int
    times: int
    hidden: bool
    adapter: bool
    name: str = ""
    idle: bool = False

    @property
    def numel(self) -> int:
        """Elements of one of them."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of one of them, without the block's rounding."""
        return self.numel * self.itemsize


IDLE = "dt_proj"
"""Mamba's step projection: transformers multiplies by its weight itself and never calls the adapted module."""

LINEAR_ROUTER = "mlp.gate.wg"
"""Hunyuan's router, a linear in fp32: peft adapts it like any other, in its own type."""

Group = tuple[int, tuple[Trainable, ...]]
"""How often, and the trainable tensors of the stem, a layer or the top in the order of ``model.parameters()``."""


def trainables(inventory: Inventory, regime: Regime) -> list[Trainable]:
    """Every trainable tensor of a run, alike ones counted together."""
    found: dict[tuple[tuple[int, ...], int, bool, bool, bool], int] = {}
    for times, tensors in ordered(inventory, regime):
        for tensor in tensors:
            alike = tensor.shape, tensor.itemsize, tensor.hidden, tensor.adapter, tensor.idle
            found[alike] = found.get(alike, 0) + times
    return [
        Trainable(shape, itemsize, times, hidden, adapter, idle=idle)
        for (shape, itemsize, hidden, adapter, idle), times in found.items()
    ]


@lru_cache(maxsize=256)
def ordered(inventory: Inventory, regime: Regime) -> tuple[Group, ...]:
    """The trainable tensors in the model's order, alike neighbouring layers as one group."""
    if not regime.training:
        return ()
    kinds = {kind: _tensors(layer.weights, True, regime) for kind, layer in enumerate(inventory.kinds)}
    groups: list[Group] = [(1, _outside(inventory.stem, regime))]
    total = len(inventory.layers)
    trained: Sequence[int] = inventory.layers
    if regime.trainable not in ("all", "none"):
        trained = [kind for index, kind in enumerate(inventory.layers) if regime.trains(index, total)]
    groups += [(len(list(run)), kinds[kind]) for kind, run in groupby(trained)]
    groups.append((1, _outside(inventory.top, regime)))
    return tuple(group for group in groups if group[1])


def _outside(weights: tuple[Weight, ...], regime: Regime) -> tuple[Trainable, ...]:
    """Those of the stem or the top: all parameters, or the adapters of every linear but the head (peft skips it)."""
    if regime.trainable == "all":
        return _tensors(weights, False, regime)
    if regime.trainable != "none":
        return ()
    return _tensors(tuple(weight for weight in weights if weight.part != "head"), False, regime)


def tensors_of(weights: tuple[Weight, ...], regime: Regime) -> tuple[Trainable, ...]:
    """The trainable tensors of one layer."""
    return _tensors(weights, True, regime)


def _tensors(weights: tuple[Weight, ...], layer: bool, regime: Regime) -> tuple[Trainable, ...]:
    return tuple(tensor for weight in weights for tensor in _of(weight, layer, regime))


def _of(weight: Weight, layer: bool, regime: Regime) -> list[Trainable]:
    if weight.role == "buffer":
        return []
    if regime.trainable != "none":
        hidden = layer and len(weight.shape) > 1
        return [Trainable(weight.shape, itemsize_of(weight, regime), 1, hidden, False, weight.name)]
    adapter = regime.adapter
    name = weight.name.removesuffix(".weight")
    if adapter is None:
        return []
    if weight.role == "expert" or (weight.part == "router" and not name.endswith(LINEAR_ROUTER)):
        return _moved(weight, adapter)
    if weight.role != "linear" or not carries(adapter, name):
        return []
    outputs, inputs = weight.shape
    shapes: dict[str, tuple[int, ...]] = {"lora_A": (adapter.rank, inputs), "lora_B": (outputs, adapter.rank)}
    if adapter.dora:
        shapes["lora_magnitude_vector"] = (outputs,)
    itemsize = FULL if name.endswith(LINEAR_ROUTER) and not regime.quantised else adapter.itemsize
    idle = name.endswith(IDLE)
    return [
        Trainable(shape, itemsize, 1, len(shape) > 1, True, f"{name}.{part}", idle) for part, shape in shapes.items()
    ]


def _moved(weight: Weight, adapter: AdapterRegime) -> list[Trainable]:
    """What peft puts on a router's matrix or on the experts' stacked tensors."""
    rank = rank_of(weight.part, adapter.moved, adapter.rank)
    if not rank or weight.name.endswith("bias") or (weight.part == "router" and "gate.weight" not in weight.name):
        return []
    *experts, outputs, inputs = weight.shape
    rank *= prod(experts)
    shapes = {"lora_A": (rank, inputs), "lora_B": (outputs, rank)}
    return [
        Trainable(shape, adapter.itemsize, 1, True, True, f"{weight.name}.{part}") for part, shape in shapes.items()
    ]


def bytes_of(tensors: list[Trainable]) -> int:
    """Bytes of one copy, each tensor in its block."""
    return sum(tensor.times * rounded(tensor.bytes) for tensor in tensors)
