"""DistributedDataParallel: gradients live in the reduction's buckets as views, or beside them.

torch 2.13, torch/csrc/distributed/c10d/reducer.cpp. Buckets hold one copy of the trainable parameters from
construction on. With ``gradient_as_bucket_view`` a gradient is copied into its bucket as soon as it is complete, and
goes; those of micro-steps without a reduction wait outside until then.
"""

from estimator.parallel.units import Ledger
from estimator.step.model import Model
from estimator.step.program import rounded
from estimator.step.runtime import Runtime
from estimator.step.tape import Leaf, Tape
from estimator.trainables import Group


class BucketViews(Runtime):
    """The runtime of one rank with ``gradient_as_bucket_view``."""

    reduces = True

    def __init__(self, tape: Tape, groups: tuple[Group, ...], accumulates: bool) -> None:
        self.tape = tape
        self.ledger = Ledger(tape)
        self.groups = groups if accumulates else ()

    def begin(self, model: Model) -> None:
        """Gradients of earlier micro-steps lie outside the buckets."""
        for times, tensors in self.groups:
            for tensor in tensors * times:
                self.ledger.take(rounded(tensor.bytes), "gradients")
        self.tape.on_gradient = self.arrived

    def arrived(self, leaf: Leaf) -> None:
        """A gradient goes into its bucket, what waited for it too."""
        leaf.gradient = Leaf(self.tape, leaf.width, leaf.itemsize, False)
        if self.groups:
            self.ledger.give(rounded(leaf.width * leaf.itemsize), "gradients")
