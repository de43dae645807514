"""Where an engine for many cards steps into a training step: the places that the step's trace calls."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from estimator.step.tape import Leaf, Tape, Tensor

if TYPE_CHECKING:
    from estimator.parallel.tensor import TensorParallel
    from estimator.step.model import Layer, Model


class Runtime:
    """One card: nothing happens at any of these places.

    ``outside``: a checkpoint lies around a layer's unit and not inside it. ``reduces``: whole gradients are reduced to
    a piece as soon as they are there; they do not add up over micro-steps.
    """

    outside = False
    reduces = False
    mixes = False
    """Frozen weights share one flat parameter with adapters: gradients of all of it are made (FSDP1)."""
    tensor: "TensorParallel | None" = None
    """What is added where layers are shared by several ranks."""
    context = 1
    """Ranks that share each sequence."""
    expert = 1
    """Ranks that the experts are dealt out to."""
    stage = ""
    """The pipeline stage that is looked at: first (no loss), last (no embedding), or "" for a whole model."""

    def neighbours(self, index: int) -> tuple[object, ...]:
        """What layers next to ``index`` contribute to its segments."""
        del index
        return ()

    def begin(self, model: "Model") -> None:
        """Before the forward."""

    def before_layer(self, layer: "Layer", x: Tensor) -> Tensor:
        """In front of layer ``layer.index``; inside its checkpointed region."""
        del layer
        return x

    def after_layer(self, layer: "Layer", out: Tensor) -> None:
        """Behind a layer."""

    def before_leaf(self, layer: "Layer", leaf: Leaf, x: Tensor) -> Tensor:
        """In front of a trainable leaf module inside a layer (an adapter's matrix)."""
        del layer, leaf
        return x

    def after_leaf(self, layer: "Layer", leaf: Leaf, out: Tensor) -> None:
        """Behind such a leaf."""

    def after_stem(self, hidden: Tensor) -> None:
        """Behind the embedding."""

    def before_top(self, hidden: Tensor) -> Tensor:
        """In front of the final norm."""
        return hidden

    def after_head(self, logits: Tensor) -> None:
        """Behind the head's linear."""

    def after_forward(self, loss: Tensor) -> None:
        """The loss is there; what the forward held is about to go."""

    def after_backward(self) -> None:
        """The backward is over; its inputs still live."""


def on_gradient(out: Tensor, call: Callable[[], None]) -> None:
    """Call when the gradient of ``out`` is complete, before the operation that made it runs backward."""
    if out.node is not None:
        out.node.hook = call


def behind(x: Tensor, call: Callable[[], None]) -> Tensor:
    """``x`` as the input of a module: ``call`` runs when the module's backward is through."""
    if not x.needs:
        return x
    tape: Tape = x.tape
    out = Tensor(tape, x.storage, x.rows, x.width, x.itemsize)

    def backward(gradient: Tensor) -> tuple[Tensor]:
        call()
        return (gradient,)

    return tape.attach(out, (x,), (), backward)
