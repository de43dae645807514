"""Units that are gathered and reduced together, in bytes, and the events that they leave on the tape."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from estimator.architecture import Inventory
from estimator.parallel.layout import Layout
from estimator.parallel.shards import Param, blocks, cards_of, params, piece
from estimator.step.regime import Regime
from estimator.step.tape import Tape


class Unit(NamedTuple):
    """Bytes of one unit on one rank.

    ``cast``: the piece cast (or brought from the host) for the gathering; ``buffer``: what the gathering fills;
    ``gathered``: the parameters; ``copy``: the gradients as handed to the reduction; ``reduced``: its result;
    ``gradient``: the result in the stored type where that differs; ``waiting``: whole gradients of earlier micro-steps.
    """

    cast: int = 0
    buffer: int = 0
    gathered: int = 0
    copy: int = 0
    reduced: int = 0
    gradient: int = 0
    waiting: int = 0


def unit_of(members: Sequence[Param], layout: Layout) -> Unit:
    """FSDP2's unit of these parameters."""
    away = layout.weights_on != "none"
    cards = [cards_of(layout, param.expert) for param in members]
    pieces = [prod(piece(param.shape, count)) for param, count in zip(members, cards, strict=True)]
    sizes = [elements * param.gathered for elements, param in zip(pieces, members, strict=True)]
    whole = [size * count for size, count in zip(sizes, cards, strict=True)]
    trained = [(n, param) for n, param in zip(pieces, members, strict=True) if param.trains]
    stored = max((param.stored for _, param in trained), default=0)
    reduce = layout.reduce or max((param.gathered for _, param in trained), default=0)
    elements = sum(n for n, _ in trained)
    return Unit(
        cast=sum(size for size, param in zip(sizes, members, strict=True) if away or param.stored != param.gathered),
        buffer=sum(whole),
        gathered=blocks(whole),
        copy=reduce * sum(n * count for n, param, count in zip(pieces, members, cards, strict=True) if param.trains),
        reduced=elements * reduce,
        gradient=elements * stored if reduce != stored else 0,
        waiting=blocks(param.numel * reduce for _, param in trained),
    )


class Units(NamedTuple):
    """The units of a model: one per layer (or none), and those around them.

    ``gradients``: bytes of each layer's whole gradients where layers are no units of their own.
    """

    layers: tuple[Unit, ...]
    root: Unit | None
    stem: Unit | None = None
    tail: Unit | None = None
    gradients: tuple[int, ...] = ()

    @property
    def all(self) -> list[Unit]:
        """Every unit."""
        around = (self.root, self.stem, self.tail)
        return [*self.layers, *(unit for unit in around if unit is not None)]


def units_of(parts: Inventory, regime: Regime, layout: Layout, tied: bool) -> Units:
    """How ``layout.wrap`` deals the parameters out."""
    everything = regime.trainable == "all"
    stem = params(parts.stem, regime, layout, everything, layer=False)
    top = params(parts.top, regime, layout, everything, layer=False)
    inner = layer_params(parts, regime, layout)
    if layout.wrap == "root":
        members = [*stem, *(param for layer in inner for param in layer), *top]
        whole = tuple(blocks(param.numel * param.gathered for param in layer if param.trains) for layer in inner)
        return Units((), unit_of(members, layout), gradients=whole)
    known = {layer: unit_of(layer, layout) for layer in dict.fromkeys(inner)}
    layers = tuple(known[layer] for layer in inner)
    if layout.wrap in ("titan", "accelerate"):
        first = None if tied else unit_of(stem, layout)
        return Units(layers, None, first, unit_of([*stem, *top] if tied else top, layout))
    return Units(layers, unit_of([*stem, *top], layout))


def labelled(units: Units) -> tuple[Units, dict[int, int]]:
    """The units with a negative label in the place of every size, and the size of each label.

    Cards that share a model differ in these sizes alone: the step of any number of them is traced once.
    """
    sizes: dict[int, int] = {}

    def label(size: int) -> int:
        number = -1 - len(sizes) if size else 0
        if size:
            sizes[number] = size
        return number

    known: dict[Unit | None, Unit | None] = {unit: Unit(*map(label, unit)) for unit in dict.fromkeys(units.all)}
    gradients = {size: label(size) for size in dict.fromkeys(units.gradients)}
    layers = tuple(unit for unit in map(known.get, units.layers) if unit is not None)
    root, stem, tail = map(known.get, (units.root, units.stem, units.tail))
    return Units(layers, root, stem, tail, tuple(gradients[size] for size in units.gradients)), sizes


def layer_params(parts: Inventory, regime: Regime, layout: Layout) -> list[tuple[Param, ...]]:
    """The parameters of every layer, alike layers sharing one tuple."""
    total = len(parts.layers)
    known: dict[tuple[int, bool], tuple[Param, ...]] = {}
    found = []
    for index, kind in enumerate(parts.layers):
        key = kind, regime.trains(index, total)
        if key not in known:
            known[key] = tuple(params(parts.kinds[kind].weights, regime, layout, key[1], layer=True))
        found.append(known[key])
    return found


class Ledger:
    """Blocks that a runtime takes and gives back by their size: they outlive the layer that made them."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def take(self, size: int, item: str = "communication") -> None:
        """Allocate ``size`` bytes."""
        if size:
            self.tape.events.append(self.tape.kind("1", size, item))

    def give(self, size: int, item: str = "communication") -> None:
        """Free a block of ``size`` bytes."""
        if size:
            self.tape.events.append(~self.tape.kind("1", size, item))
