"""Inference traced: the prompt's forward, then decode steps that read and extend the cache (transformers 5.24).

A decode step is traced for one token a sequence. Two of them are evaluated: the last, with the longest cache, and,
where layers have a sliding window, the first, whose old cache still is the whole prompt.
"""

from typing import Any

from estimator.architecture import Architecture, Inventory
from estimator.step import ops
from estimator.step.assembly import Builder
from estimator.step.cache import Cache
from estimator.step.families import family_of
from estimator.step.losses import logits_of
from estimator.step.model import Layer, Model
from estimator.step.program import Program
from estimator.step.regime import Regime
from estimator.step.tape import FULL, LONG, Tape, Tensor
from estimator.step.training import second_stack

CACHED = ("full", "sliding", "chunked")
WINDOWED = ("sliding", "chunked")


def trace_inference(arch: Architecture, inventory: Inventory, regime: Regime, decode: bool = True) -> Program:
    """The program of a generation: phases "prefill" and, with ``decode``, "decode".

    ``regime.logits`` last | all; ``regime.cache`` None or "dynamic", "static" (preallocated) or "none". Evaluate at
    ``Dimensions(batch, prompt, cached=decode steps, window=sliding window)``.
    """
    regime = regime._replace(training=False, dropout=False, trainable="none", checkpointing="none", accumulates=False)
    tape = Tape(autocast=regime.autocast)
    tape.grad_enabled = False
    kinds, order = _order(inventory)
    run = _Generation(Model(tape, arch, inventory, regime), order)
    run.prefill()
    stages = run.decode() if decode and regime.cache != "none" and arch.kind != "encoder" else []
    tape.mark("end")
    numbers = [order.index(kind) + 1 for kind in kinds]
    if run.turn:
        numbers.insert(run.turn, len(order) + 2)
    return _assemble(tape, numbers, len(order) + 1, stages)


def _order(inventory: Inventory) -> tuple[list[int], list[int]]:
    """For every layer the layer that stands for it, and those that are traced: one of each kind, and the first."""
    first: dict[tuple[int, bool], int] = {}
    stands = [first.setdefault((kind, index == 0), index) for index, kind in enumerate(inventory.layers)]
    return stands, sorted(first.values())


def _assemble(tape: Tape, numbers: list[int], top: int, stages: list[str]) -> Program:
    builder = Builder(tape)
    for stage in ["prefill", *stages]:
        phase = "prefill" if stage == "prefill" else "decode"
        builder.one(phase, 0, stage)
        builder.many(phase, numbers, stage)
        builder.one(phase, top, stage)
    return builder.recording().program()


class _Generation:
    """A model with its layers and their caches, run forward several times."""

    def __init__(self, model: Model, order: list[int]) -> None:
        self.model = model
        self.tape = model.tape
        self.family = family_of(model.arch.model_type)
        self.layers = [model.layer(index) for index in order]
        self.ids: Tensor | None = None
        self.token: Tensor | None = None
        self.turn = second_stack(model.arch)
        if model.regime.cache != "none":
            model.tape.caches = True
            for layer in self.layers:
                layer.cache = self._cache(layer) if layer.index >= self.turn else None

    def _cache(self, layer: Layer) -> Cache:
        windowed = layer.kind is not None and layer.kind.attention in WINDOWED and bool(self.model.arch.sliding_window)
        return Cache(windowed, self.model.regime.cache == "static")

    def prefill(self) -> None:
        """The prompt's forward; its ids live on."""
        self.tape.segment = 0
        self.tape.mark("prefill")
        self.ids = self.tape.new("S" if self.turn else "T", 1, LONG)
        regime = self.model.regime
        self.tape.whole_cache = regime.cache == "static" and regime.attention == "eager"
        self._forward("prefill", self.ids)

    def decode(self) -> list[str]:
        """The decode steps that can be highest; returns the names of their pieces in order."""
        self.model.regime = self.model.regime._replace(single=True, logits="last")
        stages = []
        if any(layer.cache is not None and layer.cache.windowed for layer in self.layers):
            self.tape.stage = "first"
            self._step("first")
            stages.append("first")
        self.tape.stage = "last"
        self._grow()
        self._step("last")
        return [*stages, "grow", "last"]

    def _grow(self) -> None:
        for position, layer in enumerate(self.layers):
            self.tape.segment = position + 1
            self.tape.mark("grow")
            if layer.cache is not None:
                layer.cache.grow()

    def _step(self, stage: str) -> None:
        self.tape.segment = 0
        self.tape.mark(stage)
        if self.token is not None:
            self._forward(stage, self.token.view("T"))

    def _forward(self, stage: str, ids: Tensor) -> None:
        """One forward as the model class runs it, and the choice of the next token."""
        model, tape, family = self.model, self.tape, self.family
        tape.windowed = False
        begun = self.turn > 0 and stage != "prefill"
        hidden = family.stem(model, ids) if not begun else ids
        around = family.shared(model, hidden)
        if not model.held:
            model.held.append(hidden)
        for position, layer in enumerate(self.layers):
            if self.turn and layer.index == self.turn:
                tape.segment = len(self.layers) + 2
                tape.mark(stage)
                hidden = self._target(hidden, around, begun)
            if begun and layer.index < self.turn:
                continue
            tape.segment = position + 1
            tape.mark(stage)
            hidden = family.layer(model, layer, hidden, layer.sees(around))
        tape.segment = len(self.layers) + 1
        tape.mark(stage)
        hidden = family.top(model, hidden)
        del around
        model.held.clear()
        outer, tape.item = tape.item, "logits_loss"
        if model.regime.logits != "all":
            hidden = ops.part_rows(hidden, "b")
        logits = logits_of(model, hidden)
        del hidden
        if model.regime.outputs_to_full:
            scores = tape.new("b", model.arch.vocab, FULL)
            del scores
        self.token = tape.new("b", 1, LONG, "other")
        del logits
        tape.item = outer

    def _target(self, hidden: Tensor, around: Any, begun: bool) -> Tensor:
        """What goes into the decoder: the first token once the encoder is done, later the one before."""
        if not begun:
            self.family.encoded(self.model, hidden, around)
            hidden = self.token = self.tape.new("T", 1, LONG, "other")
        out: Tensor = self.family.target(self.model, hidden, around)
        return out
