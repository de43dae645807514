"""Steps of preference and online stages: several forwards, a loss on log-probabilities, one backward.

What runs when, and what is alive meanwhile, follows the trainers of trl 1.16.0 (trl/trainer and trl/experimental);
``estimator/step/stage_losses.py`` has the step of each stage.
"""

from collections.abc import Callable
from typing import Any

from estimator.architecture import Architecture, Inventory
from estimator.parallel.layout import Layout
from estimator.parallel.runtimes import runtime_of
from estimator.parallel.units import Units
from estimator.step.assembly import Builder, Recording
from estimator.step.checkpointing import prepare
from estimator.step.model import Model
from estimator.step.ops import scale
from estimator.step.regime import Regime
from estimator.step.tape import FULL, LONG, Tape, Tensor
from estimator.step.towers import images_of
from estimator.step.training import backbone, traced_layers

Head = Callable[[Model, list[Tensor]], Any]
"""What runs on the last hidden states; they come in a list, out of which a head can take them to let them go."""
After = Callable[[list[Any]], Any]
"""What runs on a head's result once the model's forward (and its autocast) is over; it comes in a list as well."""


class Stage:
    """A step being traced: the tape, the policy, the layers that stand for all, and the forwards that ran so far."""

    def __init__(
        self, arch: Architecture, inventory: Inventory, regime: Regime, layout: Layout, units: Units | None
    ) -> None:
        self.arch, self.inventory, self.regime = arch, inventory, regime
        self.tape = Tape(autocast=regime.autocast, merge_in_place=regime.merge_in_place)
        runtime = runtime_of(self.tape, arch, inventory, regime, layout, units)
        self.classes, self.order = traced_layers(arch, inventory, regime, runtime)
        self.model = Model(self.tape, arch, inventory, regime, runtime)
        self.images = self.model.images = images_of(self.tape, self.model, self.top + 1)
        self.passes: list[str] = []
        self.others: list[Model] = []
        prepare(self.tape, regime)

    @property
    def top(self) -> int:
        """Number of the segment above the layers."""
        return len(self.order) + 1

    def inputs(self, count: int) -> list[Tensor]:
        """Token ids, masks and labels of the batch, 8 bytes a token each, and its pixels."""
        if self.images is not None and not self.images.pixels:
            self.images.given()
        return [self.tape.new("T", 1, LONG) for _ in range(count)]

    def policy(self, ids: Tensor, head: Head, after: After = list.pop) -> Any:
        """The forward that is trained, with its head; its casts end with it."""
        self._enter("forward")
        self.model.runtime.begin(self.model)
        hidden = [backbone(self.tape, self.model, self.order, ids)]
        self._head("loss")
        result = [head(self.model, hidden)]
        hidden.clear()
        if self.images is not None:
            self.images.clear()
        self.model.runtime.after_forward(result[0] if isinstance(result[0], Tensor) else result[0][0])
        self.tape.end_autocast("release")
        self.mark("outputs")
        self.passes.append("forward")
        return after(result)

    def beside(self, name: str, arch: Architecture, parts: Inventory, regime: Regime, ids: Tensor, head: Head) -> Any:
        """The forward of another model that trains too; its backward is counted with the policy's, layer by layer."""
        self._enter(name)
        self.others.append(Model(self.tape, arch, parts, regime))
        hidden = [backbone(self.tape, self.others[-1], self.order, ids, name)]
        self._head(f"{name} head")
        result = head(self.others[-1], hidden)
        hidden.clear()
        self.tape.end_autocast(f"{name} end")
        self.passes.append(name)
        self.mark(f"{name} result")
        return result

    def scoring(self, name: str, regime: Regime, ids: Tensor, head: Head, after: After = list.pop) -> Any:
        """A forward without a graph, of the policy or of a reference."""
        outer = self.tape.recording
        self.tape.recording = False
        self._enter(name)
        model = Model(self.tape, self.arch, self.inventory, regime)
        model.images = images_of(self.tape, model, self.top + 1)
        if model.images is not None and self.images is not None:
            model.images.pixels = self.images.pixels
        hidden = [backbone(self.tape, model, self.order, ids, name)]
        self._head(f"{name} head")
        result = [head(model, hidden)]
        del model
        hidden.clear()
        self.tape.end_autocast(f"{name} end")
        self.passes.append(name)
        self.mark(f"{name} result")
        found = after(result)
        self.tape.recording = outer
        return found

    def reference(self) -> Regime:
        """How the reference runs: a model of its own in evaluation mode, or the policy without its adapters."""
        own = self.regime.reference == "model"
        regime = self.regime._replace(adapter=None, trainable="none", checkpointing="none", stage="", accumulates=False)
        return regime._replace(dropout=self.regime.dropout and not own)

    def unchecked(self) -> Regime:
        """The policy itself where it scores: no checkpoints matter without a graph."""
        return self.regime._replace(checkpointing="none", accumulates=False)

    def _enter(self, piece: str) -> None:
        self.tape.autocast, self.tape.item = self.regime.autocast, "activations"
        self.tape.segment = 0
        self.tape.mark(piece)

    def _head(self, piece: str) -> None:
        self.tape.segment, self.tape.item = self.top, "logits_loss"
        self.tape.mark(piece)

    def mark(self, piece: str) -> None:
        """Begin a piece above the layers."""
        self.tape.segment = self.top
        self.tape.mark(piece)

    def backward(self, loss: list[Tensor]) -> None:
        """The backward from the one loss in the list, which ends with it."""
        tape = self.tape
        self.mark("backward")
        tape.item = "other"
        scaler = [tape.new("1", 1, FULL) for _ in range(2)] if self.regime.scaler else []
        root = scale(loss[0]) if scaler else loss[0]
        loss.clear()
        tape.backward(root)
        self.model.runtime.after_backward()
        del root
        tape.unpin()
        tape.mark("end")

    def recording(self) -> Recording:
        """The pieces in the order in which they ran."""
        builder = Builder(self.tape)
        builder.one("forward", 0, "inputs")
        for name in self.passes:
            self._pass(builder, name)
        builder.one("loss", self.top, "pair")
        builder.one("backward", self.top)
        builder.many("backward", self.classes[::-1])
        if self.images is not None:
            self.images.add(builder, "backward", back=True)
        builder.one("backward", 0)
        builder.many("backward", [0, *self.classes], "unpin")
        return builder.recording()

    def _pass(self, builder: Builder, name: str) -> None:
        policy = name == "forward"
        head, release, result = (
            ("loss", "release", "outputs") if policy else (f"{name} head", f"{name} end", f"{name} result")
        )
        builder.one("forward", 0, name)
        if self.images is not None:
            self.images.add(builder, "forward", name)
        builder.many("forward", self.classes, name)
        builder.one("forward", self.top, name)
        builder.one("loss", self.top, head)
        for number in (0, self.top):
            builder.one("loss", number, release)
        if self.images is not None:
            self.images.add(builder, "loss", release)
        builder.many("loss", self.classes, release)
        builder.one("loss", self.top, result)


def trace_stage(
    arch: Architecture, inventory: Inventory, regime: Regime, layout: Layout, units: Units | None = None
) -> Recording:
    """The recording of one (the last) micro-step of a stage."""
    from estimator.step.stage_losses import STEPS

    stage = Stage(arch, inventory, regime, layout, units)
    stage.tape.mark("inputs")
    STEPS[regime.stage](stage)
    return stage.recording()
