"""FSDP1's flat parameters: sizes of the units, and the piece that the first rank stores and optimises.

torch 2.13, torch/distributed/fsdp/_flat_param.py: parameters are laid end to end, each padded to 16 bytes where the
original parameters stay usable (``use_orig_params``), and the whole to a multiple of the number of cards.
"""

from collections.abc import Sequence
from typing import NamedTuple

from estimator.architecture import Inventory
from estimator.parallel.layout import Layout
from estimator.parallel.shards import Param, params
from estimator.parallel.units import layer_params
from estimator.step.regime import Regime
from estimator.step.tape import Leaf

ALIGNMENT = 16


class FlatUnit(NamedTuple):
    """Bytes of one unit on one rank.

    ``cast``: the piece cast for the gathering; ``gathered``: the whole flat parameter; ``flat``: its gradient;
    ``copy``: the gradient in the reduction's type; ``padded``: the gradient padded to whole pieces; ``reduced``: one
    rank's piece of it; ``gradient``: the same in the stored type, where these differ.
    """

    cast: int = 0
    gathered: int = 0
    flat: int = 0
    copy: int = 0
    padded: int = 0
    reduced: int = 0
    gradient: int = 0


def flat_unit(members: Sequence[Param], layout: Layout) -> FlatUnit:
    """The unit of these parameters, which share one type."""
    if not members:
        return FlatUnit()
    stored, gathered = members[0].stored, members[0].gathered
    total = aligned(members, layout)[-1]
    piece = -(-total // layout.shards)
    cast = piece * gathered if stored != gathered or layout.weights_on != "none" else 0
    if not any(param.trains for param in members):
        return FlatUnit(cast, piece * layout.shards * gathered)
    reduce = layout.reduce or gathered
    return FlatUnit(
        cast=cast,
        gathered=piece * layout.shards * gathered,
        flat=total * gathered,
        copy=total * reduce if reduce != gathered else 0,
        padded=piece * layout.shards * reduce if total % layout.shards else 0,
        reduced=piece * reduce,
        gradient=piece * stored if reduce != stored else 0,
    )


def aligned(members: Sequence[Param], layout: Layout) -> list[int]:
    """Where each parameter begins in the flat one, and where that ends, in elements."""
    step = ALIGNMENT // members[0].gathered if layout.original_params else 1
    places = [0]
    for param in members:
        places.append(-(-(places[-1] + param.numel) // step) * step)
    return places


def first_pieces(members: Sequence[Param], layout: Layout) -> list[int]:
    """Elements of each parameter that lie in the first rank's piece."""
    places = aligned(members, layout)
    end = -(-places[-1] // layout.shards)
    return [max(min(param.numel, end - start), 0) for param, start in zip(members, places, strict=False)]


class FlatUnits(NamedTuple):
    """The units of a model, with how a leaf of its own becomes one."""

    layers: tuple[FlatUnit, ...]
    root: FlatUnit
    layout: Layout

    @property
    def all(self) -> list[FlatUnit]:
        """Every unit but the leaves."""
        return [*self.layers, self.root]

    def leaf(self, leaf: Leaf) -> FlatUnit:
        """The unit of a trainable leaf."""
        stored = self.layout.stored_adapter or leaf.itemsize
        return flat_unit([Param((leaf.width,), stored, leaf.itemsize, True)], self.layout)


def flat_units(parts: Inventory, regime: Regime, layout: Layout) -> FlatUnits:
    """One unit per layer and the root; trainable leaves apart where ``layout.leaf_units``."""
    known: dict[tuple[Param, ...], FlatUnit] = {}
    layers = unit_members(parts, regime, layout)
    for layer in layers:
        known.setdefault(layer, flat_unit(layer, layout))
    root = flat_unit(root_members(parts, regime, layout), layout)
    return FlatUnits(tuple(known[layer] for layer in layers), root, layout)


def unit_members(parts: Inventory, regime: Regime, layout: Layout) -> list[tuple[Param, ...]]:
    """The parameters of each layer's unit."""
    layers = layer_params(parts, regime, layout)
    if layout.leaf_units and regime.adapter is not None:
        return [tuple(param for param in layer if not param.trains) for layer in layers]
    return layers


def root_members(parts: Inventory, regime: Regime, layout: Layout) -> list[Param]:
    """Embedding, final norm and head."""
    everything = regime.trainable == "all"
    return params((*parts.stem, *parts.top), regime, layout, everything, layer=False)
