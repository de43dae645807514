"""A definite setting of a run and the evaluated timeline of its step."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from estimator.architecture import Architecture, Inventory
from estimator.choices import NONE, choice_of
from estimator.inventory import inventory
from estimator.loading import loading_bytes
from estimator.optimizer_states import Choice
from estimator.optimizers import OptimizerMemory, memory_of
from estimator.parallel.layout import ONE_CARD, Layout
from estimator.parallel.layouts import layout_of
from estimator.parallel.masters import masters
from estimator.parallel.offload import moved
from estimator.parallel.pipeline import moments, stored_parts, traced_parts
from estimator.parallel.runtimes import fsdp2_units
from estimator.parallel.states import sharded_states
from estimator.parallel.tensor import local_architecture, local_inventory
from estimator.parallel.units import labelled
from estimator.regimes import inference_regime, target_length, tokens_per_row, training_regime, uneven
from estimator.schema import Run
from estimator.stack import with_linear_experts
from estimator.stages.generation import Online, cast_bytes, generation_dimensions, generation_regime, score_bytes
from estimator.stages.rows import rows_per_item, scored_tokens
from estimator.stages.standing import Standing, standing_models
from estimator.step.inference import trace_inference
from estimator.step.program import Dimensions, Program, Walk, left_by, walk
from estimator.step.regime import Regime
from estimator.step.training import trace_training
from estimator.trainables import Trainable, bytes_of, ordered, trainables
from estimator.vision.held import image_of, tower_trainables
from estimator.weights import Weights, weights

PROGRAMS = 2048
"""Traced steps kept: one question that does not fit looks at about ten, and each takes about 70 kB."""

RECORDINGS = 256
"""Recordings of steps kept for other numbers of cards, each of about 30 kB."""


class Setting(NamedTuple):
    """A run made definite: the model, how it is run, and for which dimensions. ``uneven``: rows differ in length.

    ``rows``: rows of the forward for one item of the micro-batch; ``online``: how completions are generated.
    """

    arch: Architecture
    regime: Regime
    at: Dimensions
    optimizer: Choice
    copies: int
    shares: int
    uneven: bool = False
    layout: Layout = ONE_CARD
    rows: int = 1
    online: Online | None = None


class Base(NamedTuple):
    """What lives during the whole step, in bytes."""

    weights: Weights
    trained: tuple[Trainable, ...]
    optimizer: OptimizerMemory
    gradient_bytes: int
    loading: int = 0
    standing: tuple[Standing, ...] = ()
    host: tuple[int, int] = (0, 0)
    """Bytes that wait in host memory and on disk."""

    @property
    def total(self) -> int:
        """Weights, adapters, optimizer states, and the models that stand beside."""
        return self.weights.bytes + self.optimizer.states + sum(model.bytes for model in self.standing)

    @property
    def step_bytes(self) -> int:
        """What the optimizer's step allocates at most."""
        return max(self.optimizer.temporaries, self.optimizer.refresh)


class Peak(NamedTuple):
    """The evaluated timeline: allocated bytes per phase, tensors only."""

    base: Base
    program: Program
    walked: Walk
    phases: dict[str, int]
    waiting: int
    communication: int
    steady: int
    """After the step, before the next."""
    generated: "tuple[Setting, Peak] | None" = None
    """The generation between steps, where the policy generates."""
    queued: int = 0
    """Activations of further micro-batches in a pipeline."""

    @property
    def phase(self) -> str:
        """The phase that decides."""
        return max(self.phases, key=self.phases.__getitem__)

    @property
    def live(self) -> int:
        """Live tensor bytes at the peak."""
        return max(self.phases.values())


def setting_of(run: Run, arch: Architecture) -> Setting:
    """The setting of a run whose defaults are filled."""
    arch = _headed(run, arch)
    copies = run.gpu_count or 1
    window = arch.sliding_window or 0
    if run.task != "train":
        batch = (run.micro_batch or 1) * (run.concurrency or 1)
        at = Dimensions(batch, int(run.context_len or 1), _cached(run), window)
        if arch.kind == "encoder-decoder":
            at = at._replace(length=1, source=at.length)
        return Setting(arch, inference_regime(run, arch), at, NONE, 1, copies)
    rows, regime = rows_per_item(run), training_regime(run, arch)
    chosen, layout = choice_of(run, arch), layout_of(run, regime)
    length = -(-tokens_per_row(run) // layout.context)
    at = Dimensions((run.micro_batch or 1) * rows, length, 0, window, scored_tokens(run), image_of(run, arch))
    if arch.kind == "encoder-decoder":
        at = at._replace(length=target_length(run), source=length)
    if layout.stage:
        first = Setting(arch, regime, at, chosen, copies, 1, uneven(run), layout, rows)
        return fuller_stage(first, max(run.grad_accum or 1, layout.pipeline))
    return Setting(arch, regime, at, chosen, copies, 1, uneven(run), layout, rows)


def _headed(run: Run, arch: Architecture) -> Architecture:
    """An encoder in pretraining, or with masked language modelling as its objective, has the vocabulary's head.

    A reward model has one score in its place; an embedding model's is as good as none.
    """
    stated = (run.details or {}).get("objective")
    masked = stated == "mlm" or (stated is None and run.task == "train" and run.stage == "pretrain")
    if run.task == "train" and run.stage in ("reward", "embed") and arch.kind == "decoder":
        return arch._replace(head_kind="score")
    return arch._replace(head_kind="mlm") if arch.kind == "encoder" and masked else arch


def _cached(run: Run) -> int:
    """Tokens in the cache beyond the prompt: all but the one being decoded."""
    return max(int(run.new_tokens or 0) - 1, 0)


def fuller_stage(setting: Setting, steps: int) -> Setting:
    """The first or the last stage of a pipeline of so many micro-batches, whichever needs more."""
    layout = setting.layout
    stages = (layout, layout._replace(stage="last", in_flight=layout.in_flight_last))
    fullest = [moment for stage in stages for moment in moments(setting.regime, stage, steps)]
    found = [setting._replace(regime=regime, layout=stage) for regime, stage in fullest]
    return max(found, key=lambda one: peak_of(one).live)


def resized(setting: Setting, batch: int, length: int) -> Setting:
    """The same setting for another micro-batch and length."""
    batch *= setting.rows
    window = setting.arch.sliding_window
    mask = setting.regime.mask
    if setting.uneven and mask in ("none", "padded"):
        mask = "padded" if batch > 1 else "none"
    regime = _regime(setting.regime, batch == 1, window is not None and length >= window, mask)
    at = setting.at._replace(batch=batch)
    if at.source and at.source != at.length:  # what the decoder is given stays
        return setting._replace(regime=regime, at=at._replace(source=length))
    return setting._replace(regime=regime, at=at._replace(length=length, source=length if at.source else 0))


@lru_cache(maxsize=1024)
def _regime(regime: Regime, single: bool, windowed: bool, mask: str) -> Regime:
    return regime._replace(single=single, windowed=windowed, mask=mask)


def program_of(arch: Architecture, regime: Regime, shares: int, layout: Layout = ONE_CARD) -> Program:
    """The traced step, of the fullest card where the layers are shared out."""
    return _program(arch, regime, shares, layout.traced)


@lru_cache(maxsize=PROGRAMS)
def _program(arch: Architecture, regime: Regime, shares: int, layout: Layout) -> Program:
    parts = share_of(inventory(arch), shares)
    if regime.linear_experts:
        parts = with_linear_experts(parts, arch.model_type)
    if not regime.training:
        return trace_inference(arch, parts, regime, decode=regime.generates)
    if arch.positions != "alibi":  # learned ones are in the inventory, rotary ones know no end
        arch = arch._replace(max_positions=0)
    if regime.quantised is None:
        regime = regime._replace(fp16=False)
    return _trained(arch, parts, regime, layout)


@lru_cache(maxsize=PROGRAMS)
def _trained(arch: Architecture, parts: Inventory, regime: Regime, layout: Layout) -> Program:
    local = local_inventory(traced_parts(parts, layout), layout)
    arch = local_architecture(arch, layout)
    if layout.engine != "fsdp2":
        return trace_training(arch, local, regime, layout).program()
    units, sizes = labelled(fsdp2_units(arch, local, regime, layout))
    return _recorded(arch, local, regime, layout._replace(shards=1), units).resized(sizes).program()


_recorded = lru_cache(maxsize=RECORDINGS)(trace_training)


def share_of(parts: Inventory, shares: int) -> Inventory:
    """Whole layers are dealt out (accelerate's device_map): the first card's, rounded up."""
    return parts._replace(layers=parts.layers[: -(-len(parts.layers) // shares)]) if shares > 1 else parts


@lru_cache(maxsize=PROGRAMS)
def base_of(arch: Architecture, regime: Regime, optimizer: Choice, shares: int, layout: Layout = ONE_CARD) -> Base:
    """Weights, states and the size of one copy of the gradients."""
    if layout.sharded:
        whole = with_linear_experts(inventory(arch), arch.model_type) if regime.linear_experts else inventory(arch)
        parts = local_inventory(stored_parts(whole, layout, arch.tied), layout)
        shard = moved(sharded_states(local_architecture(arch, layout), parts, regime, optimizer, layout), layout)
        beside = (*standing_models(arch, parts, regime, layout.shards), *masters(shard, layout))
        gradients = bytes_of(list(shard.trained)) if layout.states_on == "none" else 0
        host = shard.ram, shard.nvme
        loaded_bytes = shard.weights.bytes
        return Base(shard.weights, shard.trained, shard.optimizer, gradients, loaded_bytes, beside, host)
    parts = share_of(inventory(arch), shares)
    if regime.linear_experts:
        parts = with_linear_experts(parts, arch.model_type)
    held = parts._replace(top=()) if shares > 1 else parts
    groups = ordered(parts, regime)
    trained = tuple(trainables(parts, regime))
    if (seeing := tower_trainables(arch, regime)) and shares == 1:
        groups += seeing
        trained += tuple(tensor._replace(times=times) for times, tensors in seeing for tensor in tensors)
    memory = memory_of(optimizer, groups)
    if regime.update is not None:  # its step is in the backward's timeline
        memory = memory._replace(temporaries=0, refresh=0)
    gradients = bytes_of(list(trained))
    loaded = weights(arch, held, regime)
    loading = loading_bytes(held, regime, loaded)
    return Base(loaded, trained, memory, gradients, loading, standing_models(arch, held, regime))


@lru_cache(maxsize=PROGRAMS)
def peak_of(setting: Setting) -> Peak:
    """The timeline of a setting, evaluated: a search comes to one setting by several ways."""
    base = base_of(setting.arch, setting.regime, setting.optimizer, setting.shares, setting.layout)
    program = program_of(setting.arch, setting.regime, setting.shares, setting.layout)
    return _evaluated(setting, base, program)


def live_bytes(setting: Setting) -> Callable[[int, int], int]:
    """Live bytes at the peak as a function of batch and length, for searches."""
    prepared: dict[Regime, tuple[Base, Program]] = {}

    def live(batch: int, length: int) -> int:
        sized = resized(setting, batch, length)
        if sized.regime not in prepared:
            base = base_of(setting.arch, sized.regime, setting.optimizer, setting.shares, setting.layout)
            program = program_of(setting.arch, sized.regime, setting.shares, setting.layout)
            prepared[sized.regime] = base, program
        return _evaluated(sized, *prepared[sized.regime]).live

    return live


def _evaluated(setting: Setting, base: Base, program: Program) -> Peak:
    regime = setting.regime
    walked = walk(program, setting.at)
    waiting = base.gradient_bytes if regime.accumulates and not setting.layout.counts_waiting else 0
    communication = base.gradient_bytes if setting.layout.engine == "ddp" and regime.training else 0
    around = base.total + waiting + communication
    phases = {"load": base.loading}
    further = setting.layout.in_flight - 1 if regime.training else 0
    queued = further * left_by(program, setting.at, ("forward", "loss")) if further else 0
    phases |= {phase: moment.live + around + queued for phase, moment in walked.peaks.items()}
    if regime.training:
        phases["optimizer_step"] = walked.end + around + base.step_bytes
    generated = _generated(setting) if setting.online is not None else None
    if setting.online is not None:
        phases = _with_generation(setting, base, phases, generated)
    kept = communication + (base.gradient_bytes if setting.layout.keeps_gradients and regime.training else 0)
    if kept > communication:
        phases["forward"] = max(phases["forward"], base.total + kept)
    return Peak(base, program, walked, phases, waiting, communication, base.total + kept, generated, queued)


def _generated(setting: Setting) -> tuple[Setting, Peak] | None:
    """The policy's own generation, evaluated for all rows that are made at once."""
    online = setting.online
    if online is None or online.engine != "hf":
        return None
    at = generation_dimensions(setting.at, online.batches)
    regime = generation_regime(setting.regime, at.batch == 1)
    alone = setting._replace(regime=regime, at=at, optimizer=NONE, layout=ONE_CARD, copies=1, rows=1, online=None)
    return alone, peak_of(alone)


def _with_generation(
    setting: Setting, base: Base, phases: dict[str, int], generated: tuple[Setting, Peak] | None
) -> dict[str, int]:
    """The phases with those of the generation, or with the engine that stands beside."""
    online = setting.online
    assert online is not None
    if generated is not None:
        alone = generated[1]
        beside = base.total - alone.base.total + cast_bytes(setting.arch, setting.regime)
        found = {name: alone.phases[name] + beside for name in ("prefill", "decode") if name in alone.phases}
        if "decode" in found:
            found["decode"] += score_bytes(setting.arch, online, generated[0].at)
        return phases | found
    if online.sleeps:
        return phases | {"decode": base.total + online.bytes}
    return {name: size + (online.bytes if name != "load" else 0) for name, size in phases.items()}
