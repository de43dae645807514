"""What one rank stores of each parameter, and the parameters of a unit.

FSDP2 (torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param.py) cuts every parameter along its first dimension;
the first rank's piece is the largest, and gathered parameters are as long as all pieces padded to it.
"""

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import NamedTuple

from estimator.architecture import Inventory, Weight
from estimator.catalogue.formats import weight_format
from estimator.parallel.layout import Layout
from estimator.step.model import itemsize_of
from estimator.step.program import rounded
from estimator.step.regime import Regime
from estimator.step.tape import HALF
from estimator.trainables import Group, tensors_of

Shape = tuple[int, ...]


class Param(NamedTuple):
    """A parameter of a unit: its whole shape, bytes per element stored and gathered, and whether it trains.

    ``expert``: expert parallel has dealt its experts out already, so that fewer cards share it.
    """

    shape: Shape
    stored: int
    gathered: int
    trains: bool
    expert: bool = False

    @property
    def numel(self) -> int:
        """Elements of the whole parameter."""
        return prod(self.shape)


def piece(shape: Shape, cards: int) -> Shape:
    """The first rank's piece of a parameter that is cut along its first dimension."""
    return (-(-shape[0] // cards), *shape[1:]) if shape else shape


def cards_of(layout: Layout, expert: bool) -> int:
    """Cards that share a parameter: of experts that are dealt out, those of one expert group (torchtitan's efsdp)."""
    return max(layout.shards // layout.expert, 1) if expert else layout.shards


def stored_regime(regime: Regime, layout: Layout) -> Regime:
    """The regime with the types in which parameters are stored between steps."""
    adapter = regime.adapter
    if adapter is not None and layout.stored_adapter:
        adapter = adapter._replace(itemsize=layout.stored_adapter)
    return regime._replace(itemsize=layout.stored or regime.itemsize, adapter=adapter)


def params(weights: Iterable[Weight], regime: Regime, layout: Layout, trains: bool, *, layer: bool) -> list[Param]:
    """The parameters of a module, the adapters that it carries among them."""
    kept = tuple(weight for weight in weights if weight.role != "buffer")
    stored = stored_regime(regime, layout)
    found = []
    for weight in kept:
        if (packed := packed_bytes(weight, regime)) is not None:
            found.append(Param((packed // HALF,), HALF, HALF, False))
        else:
            gathered = layout.gather or itemsize_of(weight, regime)
            expert = weight.role == "expert"
            found.append(Param(weight.shape, itemsize_of(weight, stored), gathered, trains, expert))
    if layer and regime.adapter is not None:
        for tensor in tensors_of(kept, stored):
            found.append(Param(tensor.shape, tensor.itemsize, layout.gather or tensor.itemsize, True))
    return found


def scale_bytes(weight: Weight, regime: Regime) -> int:
    """Bytes of a quantised weight beside its packed part."""
    packed = packed_bytes(weight, regime)
    if packed is None:
        return 0
    return blocks(weight_format(str(regime.quantised)).blocks(weight.shape, weight.part == "head")) - rounded(packed)


def packed_bytes(weight: Weight, regime: Regime) -> int | None:
    """Bytes of the packed part of a quantised weight: that is cut and gathered, stored as a half type.

    Scales and tables stay whole on every rank (bitsandbytes' ``bnb_4bit_quant_storage``); of GPTQ the weights and zero
    points are parameters viewed as half (fms-acceleration, ``PATCH_FOR_FSDP_TRITON_V2``).
    """
    if regime.quantised is None or regime.adapter is None:
        return None
    found = weight_format(regime.quantised)
    if found.scheme == "plain" or not found.covers(weight):
        return None
    sizes = found.blocks(weight.shape, weight.part == "head")
    return sizes[0] + sizes[1] if found.scheme == "gptq" else max(sizes)


def cut_inventory(parts: Inventory, cut: Callable[[Shape, bool], Shape]) -> Inventory:
    """The inventory with every parameter's piece in its place; buffers stay whole."""

    def each(weights: Iterable[Weight]) -> tuple[Weight, ...]:
        return tuple(w if w.role == "buffer" else w._replace(shape=cut(w.shape, w.role == "expert")) for w in weights)

    kinds = tuple(kind._replace(weights=each(kind.weights)) for kind in parts.kinds)
    return parts._replace(stem=each(parts.stem), kinds=kinds, top=each(parts.top))


def cut_groups(groups: Iterable[Group], cut: Callable[[Shape, bool], Shape]) -> Iterator[Group]:
    """The trainable tensors with every one's piece in its place."""
    for times, tensors in groups:
        yield times, tuple(tensor._replace(shape=cut(tensor.shape, "experts." in tensor.name)) for tensor in tensors)


def blocks(sizes: Iterable[int]) -> int:
    """Bytes of several blocks, each rounded."""
    return sum(map(rounded, sizes))
