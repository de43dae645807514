"""FSDP1 (``FullyShardedDataParallel``): each unit is one flat parameter, gathered straight into its own storage.

Order of events: torch 2.13, torch/distributed/fsdp/_runtime_utils.py and _flat_param.py. The gradients of a unit are
concatenated into a flat one when all are there, cast to the reduction's type and reduced to one rank's piece.
"""

from collections.abc import Iterable

from estimator.parallel.flat import FlatUnit, FlatUnits
from estimator.parallel.layout import Layout
from estimator.parallel.units import Ledger
from estimator.step.model import Layer, Model
from estimator.step.runtime import Runtime, behind, on_gradient
from estimator.step.tape import Leaf, Tape, Tensor


class Fsdp1(Runtime):
    """The runtime of one rank."""

    reduces = True

    def __init__(self, tape: Tape, layout: Layout, units: FlatUnits, accumulates: bool) -> None:
        self.tape = tape
        tape.keeps_casts = layout.whole_adapters
        self.ledger = Ledger(tape)
        self.layout = layout
        self.outside = layout.outside
        self.mixes = not layout.leaf_units
        self.reduces = not layout.whole_adapters
        self.over = False
        """The model has returned."""
        self.ahead = layout.reshard and layout.prefetch == "pre"
        """Units are gathered ahead of their backward."""
        self.behind = layout.reshard and layout.prefetch == "post"
        """A unit is gathered when the backward of the one after it is over."""
        self.units = units
        self.accumulates = accumulates and not layout.whole_gradients
        self.waits = accumulates and layout.whole_gradients
        self.gathered: set[object] = set()
        """Units that the backward has gathered and not yet let go."""
        self.done: set[object] = set()
        self.leaves: dict[int, list[Leaf]] = {}
        """Trainable leaves of each layer that are units of their own, in the order of the forward."""
        self.model: Model | None = None

    def neighbours(self, index: int) -> tuple[object, ...]:
        """The units around a layer's own."""
        layers = self.units.layers
        return tuple(layers[i] if 0 <= i < len(layers) else None for i in (index - 1, index))

    def begin(self, model: Model) -> None:
        """The root is gathered and stays."""
        self.model = model
        if self.waits:
            for unit in self.units.all:
                self.ledger.take(unit.flat, "gradients")
        self._gather(self.units.root)

    def before_layer(self, layer: Layer, x: Tensor) -> Tensor:
        """The layer's flat parameter is gathered."""
        unit = self.units.layers[layer.index]
        self._gather(unit)
        if self.tape.rerunning and x.needs and not unit.flat:
            self.tape.trapped.append(x)
        return behind(x, lambda: self._layer_done(layer))

    def after_layer(self, layer: Layer, out: Tensor) -> None:
        """It goes, and comes again in the backward."""
        unit = self.units.layers[layer.index]
        self._let_go(unit)
        if not self.tape.recording:
            self.ahead = self.behind = False  # no graph yet: nothing asks for the unit's backward
        on_gradient(out, lambda: self._layer_backward(layer.index))

    def before_leaf(self, layer: Layer, leaf: Leaf, x: Tensor) -> Tensor:
        """A trainable leaf that is a unit of its own."""
        if not self.layout.leaf_units or self.layout.whole_adapters:
            return x
        unit = self.units.leaf(leaf)
        self._gather(unit)
        self.leaves.setdefault(layer.index, []).append(leaf)
        return behind(x, lambda: self._leaf_done(leaf, unit))

    def after_leaf(self, layer: Layer, leaf: Leaf, out: Tensor) -> None:
        """Behind such a leaf."""
        if self.layout.leaf_units and not self.layout.whole_adapters:
            unit = self.units.leaf(leaf)
            self._let_go(unit)
            on_gradient(out, lambda: self._leaf_backward(layer, leaf, unit))

    def after_forward(self, loss: Tensor) -> None:
        """The root's backward begins at the loss: the last layer is gathered ahead."""
        if self.over:
            return
        self.over = True
        last = len(self.units.layers) - 1
        on_gradient(loss, lambda: self._ahead(("layer", last), self.units.layers[last]))

    def after_backward(self) -> None:
        """The root's gradients are reduced; what still lies gathered goes."""
        model = self.model
        assert model is not None
        for layer in model.layers[:1]:
            if ("layer", layer.index) not in self.done:
                self._layer_done(layer)
        self._finish(self.units.root, [*model.stem.leaves.values(), *model.top.leaves.values()])

    def _gather(self, unit: FlatUnit) -> None:
        self.ledger.take(unit.cast)
        self.ledger.take(unit.gathered, "weights")
        self.ledger.give(unit.cast)

    def _let_go(self, unit: FlatUnit) -> None:
        if self.layout.reshard:
            self.ledger.give(unit.gathered, "weights")

    def _ahead(self, name: object, unit: FlatUnit) -> None:
        if self.ahead:
            self.gathered.add(name)
            self._gather(unit)

    def _unshard(self, name: object, unit: FlatUnit) -> None:
        if self.layout.reshard and name not in self.gathered:
            self._gather(unit)

    def _layer_backward(self, index: int) -> None:
        if not self.ahead and not (self.behind and index + 1 < len(self.units.layers)):
            self._unshard(("layer", index), self.units.layers[index])
        if leaves := self.leaves.get(index):
            self._ahead(leaves[-1], self.units.leaf(leaves[-1]))
        elif index:
            self._ahead(("layer", index - 1), self.units.layers[index - 1])

    def _leaf_backward(self, layer: Layer, leaf: Leaf, unit: FlatUnit) -> None:
        self._unshard(leaf, unit)
        order = self.leaves[layer.index]
        place = order.index(leaf)
        if place:
            self._ahead(order[place - 1], self.units.leaf(order[place - 1]))
        elif layer.index:
            self._ahead(("layer", layer.index - 1), self.units.layers[layer.index - 1])

    def _layer_done(self, layer: Layer) -> None:
        self.done.add(("layer", layer.index))
        unit = self.units.layers[layer.index]
        before = layer.index - 1 if layer.index else None
        own = [leaf for leaf in layer.leaves.values() if leaf not in self.leaves.get(layer.index, ())]
        own = [] if self.layout.whole_adapters else own
        self._finish(unit, own, before)

    def _leaf_done(self, leaf: Leaf, unit: FlatUnit) -> None:
        self._finish(unit, [leaf])

    def _finish(self, unit: FlatUnit, leaves: Iterable[Leaf], before: int | None = None) -> None:
        """Flat gradient, parameters go, reduction; what is left is one rank's piece."""
        ledger = self.ledger
        ledger.take(unit.flat, "gradients")
        for leaf in leaves:
            leaf.gradient = None
        ledger.give(unit.gathered, "weights")
        if before is not None and self.behind:
            self._gather(self.units.layers[before])
        ledger.take(unit.copy)
        ledger.take(unit.padded)
        ledger.take(unit.reduced, "communication" if unit.gradient else "gradients")
        ledger.give(unit.padded)
        ledger.give(unit.copy)
        if unit.gradient:
            ledger.take(unit.gradient, "gradients")
            ledger.give(unit.reduced)
        if self.waits:
            ledger.give(unit.flat, "gradients")
        ledger.give(unit.flat, "gradients")
        if self.accumulates or self.layout.states_on != "none":
            ledger.give(unit.gradient or unit.reduced, "gradients")
