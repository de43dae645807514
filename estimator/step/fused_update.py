"""Optimizers that run inside the backward, parameter by parameter.

LOMO and AdaLomo update a parameter, and drop its gradient, when the gradient of the next one arrives. Read in
lomo-optim 0.1.1 (lomo.py and adalomo.py, ``fuse_update``): a hook on every parameter runs before its gradient is
stored; it works on fp32 copies of the waiting gradient and its parameter. Any optimizer can be put into a hook behind
each gradient (torchtune 0.6.1, training/memory.py, ``register_optim_in_bwd_hooks``): then none waits.
"""

from collections.abc import Callable

from estimator.step.tape import FULL, Leaf, Tape, Tensor

ITEM = "optimizer_temp"
AT_ONCE = "at-once-"
"""Before the number of copies of a parameter that a step in a hook makes."""


class FusedUpdate:
    """The hook: at most one gradient waits."""

    def __init__(self, tape: Tape, kind: str) -> None:
        self.tape = tape
        self.kind = kind
        self.waiting: Leaf | None = None

    def __call__(self, leaf: Leaf | None) -> None:
        """Update the waiting parameter; ``leaf`` is the next to wait."""
        waiting, self.waiting = self.waiting, leaf
        if waiting is None:
            return
        gradient = self._copy(waiting)
        waiting.gradient = None
        if self.kind == "adalomo":
            self._adaptive(waiting, gradient)
        else:
            self._copy(waiting)

    def _copy(self, leaf: Leaf) -> Tensor | None:
        """``leaf`` in fp32: a new tensor unless it is fp32 already."""
        return self._new(leaf.width) if leaf.itemsize != FULL else leaf.gradient

    def _new(self, elements: int) -> Tensor:
        return self.tape.new("1", elements, FULL, ITEM)

    def _adaptive(self, leaf: Leaf, gradient: Tensor | None) -> None:
        """Squared gradient, its factored mean as the update, and the fp32 parameter."""
        square = self._new(leaf.width)
        update = self._new(leaf.width)
        del square
        if len(leaf.shape) > 1:
            row, column = self._new(leaf.width // leaf.shape[-1]), self._new(leaf.width // leaf.shape[-2])
            factored = self._new(leaf.width)
            del row, column
            update = factored
            del factored
        else:
            update = self._new(leaf.width)
        parameter = self._new(leaf.width) if leaf.itemsize != FULL else None
        length = self._new(1)
        del gradient, update, parameter, length


class StepAtOnce:
    """An optimizer for each parameter, whose step makes ``copies`` of it and drops the gradient at once."""

    def __init__(self, tape: Tape, copies: int) -> None:
        self.tape = tape
        self.copies = copies

    def __call__(self, leaf: Leaf | None) -> None:
        """Update ``leaf``."""
        if leaf is None:
            return
        made = [self.tape.new("1", leaf.width, leaf.itemsize, ITEM) for _ in range(self.copies)]
        del made
        leaf.waiting = None


def update_of(tape: Tape, kind: str) -> Callable[[Leaf | None], None]:
    """The hook by its name in ``Regime.update``."""
    return StepAtOnce(tape, int(kind.removeprefix(AT_ONCE))) if kind.startswith(AT_ONCE) else FusedUpdate(tape, kind)
