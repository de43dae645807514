"""DeepSpeed's ZeRO-3: parameters gathered by the coordinator, gradients through a bucket into the rank's pieces."""

from estimator.parallel.coordinator import Level
from estimator.parallel.layout import Layout
from estimator.parallel.units import Ledger
from estimator.step.model import Layer, Model
from estimator.step.runtime import Runtime, behind, on_gradient
from estimator.step.tape import HALF, Leaf, Tape, Tensor

NOTHING = Level(0, 0)


class Zero3(Runtime):
    """The runtime of one rank. ``levels`` by place (-1 stem, layers, then top) and direction, in elements."""

    reduces = True

    def __init__(self, tape: Tape, layout: Layout, levels: dict[tuple[int, bool], Level], layers: int) -> None:
        self.tape = tape
        self.ledger = Ledger(tape)
        self.layout = layout
        self.levels = levels
        self.top = layers
        self.waiting: Leaf | None = None
        """A gradient larger than the bucket, until the next one arrives."""

    def neighbours(self, index: int) -> tuple[object, ...]:
        """What is gathered around a layer tells layers apart."""
        return (self.levels.get((index, False)), self.levels.get((index, True)))

    def begin(self, model: Model) -> None:
        """The embedding is gathered."""
        self.tape.on_gradient = self.arrived
        self._take(-1, False)

    def after_stem(self, hidden: Tensor) -> None:
        """Behind the embedding; its backward is the last."""
        self._give(-1, False)
        on_gradient(hidden, lambda: self._take(-1, True))

    def before_layer(self, layer: Layer, x: Tensor) -> Tensor:
        """A layer's parameters are gathered; behind its backward they go, or stay."""
        self._take(layer.index, False)
        return behind(x, lambda: self._give(layer.index, True))

    def after_layer(self, layer: Layer, out: Tensor) -> None:
        """Behind a layer's forward."""
        self._give(layer.index, False)
        on_gradient(out, lambda: self._take(layer.index, True))

    def before_top(self, hidden: Tensor) -> Tensor:
        """The head's matrix is gathered."""
        self._take(self.top, False)
        return behind(hidden, lambda: self._give(self.top, True))

    def after_forward(self, loss: Tensor) -> None:
        """Behind the loss."""
        self._give(self.top, False)
        on_gradient(loss, lambda: self._take(self.top, True))

    def arrived(self, leaf: Leaf) -> None:
        """A gradient that fits the bucket is copied there; a larger one lives until the next arrives."""
        self._flush()
        if leaf.width > self.layout.bucket:
            self.waiting = leaf
        else:
            leaf.gradient = Leaf(self.tape, leaf.width, leaf.itemsize, False)

    def after_backward(self) -> None:
        """The last gradients are reduced; nothing stays gathered."""
        self._flush()
        self._give(-1, True)

    def _flush(self) -> None:
        if self.waiting is not None:
            self.waiting.gradient, self.waiting = None, None

    def _take(self, place: int, backward: bool) -> None:
        self.ledger.take(self.levels.get((place, backward), NOTHING).taken * HALF, "weights")

    def _give(self, place: int, backward: bool) -> None:
        self.ledger.give(self.levels.get((place, backward), NOTHING).given * HALF, "weights")
