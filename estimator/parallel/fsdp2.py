"""FSDP2 (``fully_shard``): gathering before use, one unit ahead in the backward, reduction behind it.

Order of events: torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py. The
gathering's buffer of the forward lives until the next unit's parameters are copied out; the reduction's input until
the next unit's reduction.
"""

from collections.abc import Iterable

from estimator.parallel.layout import Layout
from estimator.parallel.units import Ledger, Unit, Units
from estimator.step.model import Layer, Model
from estimator.step.runtime import Runtime, behind, on_gradient
from estimator.step.tape import Leaf, Tape, Tensor


class Fsdp2(Runtime):
    """The runtime of one rank."""

    def __init__(self, tape: Tape, layout: Layout, units: Units, accumulates: bool) -> None:
        self.ledger = Ledger(tape)
        self.layout = layout
        self.outside = layout.outside
        self.stays = bool(layout.stage) and not layout.reshard
        """A pipeline's stage is gathered in its first micro-batch, and stays so until the last."""
        self.over = False
        """The model has returned."""
        self.units = units
        self.accumulates = accumulates and not layout.whole_gradients
        self.waits = accumulates and layout.whole_gradients
        self.reduces = not (self.waits and layout.reduce in (0, layout.gather))
        """Gradients that wait in the type they are made in are added to at once, each by itself."""
        self.buffer = 0
        """Bytes of the forward's last gathering."""
        self.copy = 0
        """Bytes of the last reduction's input."""
        self.done: set[int] = set()
        self.tail_ran = False
        self.ahead: Unit | None = None
        """The unit that the backward has gathered ahead."""
        self.model: Model | None = None

    def neighbours(self, index: int) -> tuple[object, ...]:
        """The units around a layer's own: their sizes show in its segments."""
        layers = self.units.layers or self.units.gradients
        return tuple(layers[i] if 0 <= i < len(layers) else None for i in (index - 1, index, index + 1))

    def begin(self, model: Model) -> None:
        """The root, or what is used first, is gathered."""
        self.model = model
        if self.waits:
            for unit in self.units.all:
                self.ledger.take(unit.waiting, "gradients")
        units = self.units
        for unit in units.all if self.stays else ():
            self.ledger.take(unit.gathered, "weights")
        for first in (units.root, units.stem):
            if first is not None:
                self._forward(first)
        if units.root is None and units.stem is None and units.tail is not None:
            self._forward(units.tail)

    def after_stem(self, hidden: Tensor) -> None:
        """An embedding that is a unit of its own goes, and comes again in the backward."""
        unit = self.units.stem
        if unit is not None:
            self._let_go(unit)
            on_gradient(hidden, lambda: self._regather(unit, None))

    def before_layer(self, layer: Layer, x: Tensor) -> Tensor:
        """The layer's unit is gathered."""
        if not self.units.layers:
            return behind(x, lambda: self._hold(layer))
        unit = self.units.layers[layer.index]
        before = self.units.layers[layer.index - 1] if layer.index else self._before_layers()
        self.buffer = before.buffer if before is not None and not self.stays else 0
        self._forward(unit)
        return behind(x, lambda: self._layer_done(layer))

    def after_layer(self, layer: Layer, out: Tensor) -> None:
        """The unit goes, and comes again in the backward."""
        if self.units.layers:
            unit = self.units.layers[layer.index]
            self._let_go(unit)
            on_gradient(out, lambda: self._layer_backward(layer.index))

    def before_top(self, hidden: Tensor) -> Tensor:
        """Final norm and head as a unit that stays."""
        self.buffer = self.units.layers[-1].buffer if self.units.layers and not self.stays else self.buffer
        unit, model = self.units.tail, self.model
        assert model is not None
        if unit is None or self.units.stem is None:
            return hidden
        self._forward(unit)
        return behind(hidden, lambda: self._reduce(unit, model.top.leaves.values()))

    def after_head(self, logits: Tensor) -> None:
        """The tail's backward begins at the logits: the last layer is gathered ahead."""
        if self.units.tail is not None:
            self.tail_ran = True
            on_gradient(logits, self._ahead_of_layers)

    def after_forward(self, loss: Tensor) -> None:
        """The last buffer goes; the root's backward begins at the loss."""
        if self.over:
            return
        self.over = True
        self.ledger.give(self.buffer)
        self.buffer = 0
        if not self.tail_ran:
            on_gradient(loss, self._ahead_of_layers)

    def after_backward(self) -> None:
        """What has not been reduced is reduced; buffers go."""
        model = self.model
        assert model is not None
        own = [*model.stem.leaves.values()]
        if self.units.root is not None:
            if not self.units.layers:
                self._hold(model.layers[0])
            self._reduce(self.units.root, [*own, *model.top.leaves.values()])
            for size in self.units.gradients:
                self.ledger.give(size, "gradients")
        elif self.units.stem is not None:
            self._reduce(self.units.stem, own)
        for layer in model.layers[:1] if self.units.layers else []:
            if layer.index not in self.done:
                self._reduce(self.units.layers[layer.index], layer.leaves.values())
        if self.units.tail is not None and self.units.stem is None:
            self._reduce(self.units.tail, [*own, *model.top.leaves.values()])
        self.ledger.give(self.copy)
        self.ledger.give(self.ahead.buffer if self.ahead is not None else 0)
        self._end_all_reduces()

    def _before_layers(self) -> Unit | None:
        units = self.units
        return units.root or units.stem or units.tail

    def _gather(self, unit: Unit) -> None:
        self.ledger.take(unit.cast)
        self.ledger.take(unit.buffer)
        self.ledger.give(unit.cast)

    def _forward(self, unit: Unit) -> None:
        if self.stays:
            return
        self._gather(unit)
        self.ledger.take(unit.gathered, "weights")
        self.ledger.give(self.buffer)
        self.buffer = unit.buffer

    def _let_go(self, unit: Unit) -> None:
        if self.layout.reshard:
            self.ledger.give(unit.gathered, "weights")

    def _regather(self, unit: Unit, ahead: Unit | None) -> None:
        """A unit that was gathered ahead is copied out; the next one is gathered."""
        if not self.layout.reshard:
            return
        self.ledger.take(unit.gathered, "weights")
        self.ledger.give(unit.buffer)
        self.ahead = ahead
        if ahead is not None:
            self._gather(ahead)

    def _layer_backward(self, index: int) -> None:
        self._regather(self.units.layers[index], self.units.layers[index - 1] if index else self.units.stem)

    def _ahead_of_layers(self) -> None:
        if self.units.layers and self.layout.reshard:
            self._gather(self.units.layers[-1])

    def _hold(self, layer: Layer) -> None:
        """The gradients of a layer that is no unit wait for the root's reduction."""
        if layer.index not in self.done:
            self.done.add(layer.index)
            _drop(layer.leaves.values())
            self.ledger.take(self.units.gradients[layer.index], "gradients")

    def _layer_done(self, layer: Layer) -> None:
        layers = self.units.layers
        self.done.add(layer.index)
        if layer.index + 1 < len(layers):
            self.copy = layers[layer.index + 1].copy
        self._reduce(layers[layer.index], layer.leaves.values())

    def _reduce(self, unit: Unit, leaves: Iterable[Leaf]) -> None:
        """Parameters go; gradients are copied, reduced, and what is left of them is one rank's piece."""
        ledger, found = self.ledger, list(leaves)
        if self.waits:
            _drop(found)
        ledger.give(unit.gathered, "weights")
        ledger.give(self.copy)
        self.copy = unit.copy
        ledger.take(unit.copy)
        _drop(found)
        if self.waits:
            ledger.give(unit.waiting, "gradients")
        ledger.take(unit.reduced, "communication" if unit.gradient else "gradients")
        if unit.gradient:
            ledger.take(unit.gradient, "gradients")
            if self.layout.replicas == 1:
                ledger.give(unit.reduced)
        if self.layout.states_on != "none" or (self.accumulates and (unit.gradient or self.layout.replicas == 1)):
            ledger.give(unit.gradient or unit.reduced, "gradients")

    def _end_all_reduces(self) -> None:
        """Replicas' reductions keep their results until the backward is over."""
        for unit in self.units.all if self.layout.replicas > 1 else ():
            if unit.gradient:
                self.ledger.give(unit.reduced)
            elif self.accumulates:
                self.ledger.give(unit.reduced, "gradients")


def _drop(leaves: Iterable[Leaf]) -> None:
    for leaf in leaves:
        leaf.gradient = None
