"""Weights, trainable tensors and optimizer memory of one rank when parameters are shared out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from estimator.architecture import Architecture, Inventory, Weight
from estimator.optimizer_states import Choice
from estimator.optimizers import OptimizerMemory, memory_of
from estimator.parallel.flat import aligned, first_pieces, root_members, unit_members
from estimator.parallel.layout import Layout
from estimator.parallel.shards import (
    Param,
    Shape,
    blocks,
    cards_of,
    cut_groups,
    cut_inventory,
    params,
    piece,
    scale_bytes,
    stored_regime,
)
from estimator.parallel.units import layer_params
from estimator.parallel.zero import partition_of
from estimator.step.program import rounded
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF
from estimator.trainables import Group, Trainable, ordered
from estimator.weights import Weights, weights

FP64 = 8
SUB_GROUP = 1_000_000_000
"""Elements that ZeRO-3 optimises at a time (DeepSpeed's ``sub_group_size``)."""


class Stored(NamedTuple):
    """What the first rank stores between steps. ``master``: bytes of fp32 copies of the parameters it optimises.

    ``gradients``, ``bucket``: bytes of buffers that ZeRO-3 holds from the start on; ``persistent``: small
    parameters that it keeps whole beside their pieces. ``ram``, ``nvme``: bytes that wait
    on the host.
    """

    weights: Weights
    trained: tuple[Trainable, ...]
    optimizer: OptimizerMemory
    master: int = 0
    gradients: int = 0
    bucket: int = 0
    persistent: int = 0
    ram: int = 0
    nvme: int = 0


def sharded_states(arch: Architecture, parts: Inventory, regime: Regime, optimizer: Choice, layout: Layout) -> Stored:
    """What the first rank stores, in the types that it is stored in."""
    if layout.engine == "megatron":
        return megatron_states(arch, parts, regime, optimizer, layout)
    if layout.engine == "deepspeed":
        return zero_states(arch, parts, regime, optimizer, layout)
    stored = stored_regime(regime, layout)
    if layout.engine == "fsdp1":
        held, groups = _flat(arch, parts, stored, layout)
    else:
        held, groups = _cut(arch, parts, stored, layout)
    memory = memory_of(optimizer, groups)
    if layout.tensor > 1 and not layout.cut and optimizer.clipping:
        memory = memory._replace(temporaries=memory.temporaries + _summed_embedding(arch, parts, stored, layout))
    return Stored(held, tuple(_counted(groups)), memory)


def _summed_embedding(arch: Architecture, parts: Inventory, stored: Regime, layout: Layout) -> int:
    """Clipping reduces the whole-sized gradient that an untied, dealt out embedding has on every rank to its piece."""
    if arch.tied or layout.whole_ends or stored.trainable != "all" or not parts.stem:
        return 0
    return rounded(parts.stem[0].numel * stored.itemsize)


def _cut(arch: Architecture, parts: Inventory, stored: Regime, layout: Layout) -> tuple[Weights, list[Group]]:
    """FSDP2: a piece of every parameter."""

    def cut(shape: Shape, expert: bool) -> Shape:
        return piece(shape, cards_of(layout, expert))

    adapters = cut_groups(ordered(parts, stored._replace(training=True, trainable="none")), cut)
    held = weights(arch, cut_inventory(parts, cut), stored, _counted(adapters))
    return held, list(cut_groups(ordered(parts, stored), cut))


def _counted(groups: Iterable[Group]) -> list[Trainable]:
    """Every tensor of the groups with how often it occurs."""
    return [tensor._replace(times=times) for times, tensors in groups for tensor in tensors]


def _flat(arch: Architecture, parts: Inventory, stored: Regime, layout: Layout) -> tuple[Weights, list[Group]]:
    """FSDP1: a piece of every unit's flat parameter, and of each parameter what lies in it."""
    layers, root = unit_members(parts, stored, layout), tuple(root_members(parts, stored, layout))
    leaves = list(_leaf_groups(parts, stored, layout))
    held = weights(arch, _flat_inventory(parts, layers, root, stored, layout), stored, _counted(leaves))
    groups = [group for unit in (root, *layers) if (group := _pieces(unit, layout))[1]]
    return held, [*leaves, *groups]


def _flat_inventory(
    parts: Inventory, layers: Sequence[tuple[Param, ...]], root: tuple[Param, ...], stored: Regime, layout: Layout
) -> Inventory:
    """Each unit as one tensor; buffers, and the scales of packed weights, stay whole beside it."""

    def flat(members: Sequence[Param], weights: Iterable[Weight]) -> tuple[Weight, ...]:
        end = aligned(members, layout)[-1] if members else 0
        kept = [weight for weight in weights if weight.role == "buffer"]
        scales = sum(scale_bytes(weight, stored) for weight in weights) // HALF
        whole = [Weight("scales", (scales,), "other")] if scales else []
        return (Weight("flat", (-(-end // layout.shards),), "other"), *kept, *whole)

    kind_of = dict(zip(parts.layers, layers, strict=True))
    kinds = tuple(
        kind._replace(weights=flat(kind_of.get(index, ()), kind.weights)) for index, kind in enumerate(parts.kinds)
    )
    return parts._replace(stem=flat(root, parts.stem), kinds=kinds, top=())


def _pieces(members: Sequence[Param], layout: Layout) -> Group:
    """The parts of a unit's trainable parameters that the first rank optimises."""
    if not any(param.trains for param in members):
        return 1, ()
    if not layout.original_params:
        end = -(-aligned(members, layout)[-1] // layout.shards)
        return 1, (Trainable((end,), members[0].stored, 1, False, False),)
    sizes = zip(first_pieces(members, layout), members, strict=True)
    return 1, tuple(
        Trainable((size,), param.stored, 1, len(param.shape) > 1, False)
        for size, param in sizes
        if size and param.trains
    )


def _leaf_groups(parts: Inventory, stored: Regime, layout: Layout) -> Iterator[Group]:
    """Adapters' matrices as units of their own."""
    if layout.leaf_units:
        for times, tensors in ordered(parts, stored):
            cards = 1 if layout.whole_adapters else layout.shards
            yield times, tuple(tensor._replace(shape=(-(-tensor.numel // cards),)) for tensor in tensors)


def zero_states(arch: Architecture, parts: Inventory, regime: Regime, optimizer: Choice, layout: Layout) -> Stored:
    """DeepSpeed: whole parameters (stage 3: a piece of each), an fp32 copy and states of one rank's part.

    The step makes a half-precision and an fp32 copy of the part's gradients; clipping looks at one in fp64 first.
    """
    partition = partition_of(parts, regime, layout.shards, layout.bucket)
    part = Trainable((partition.size,), FULL, 1, False, regime.adapter is not None)
    memory = _in_fp32(memory_of(optimizer, [(1, (part,))]))
    copies = (HALF + FULL) * partition.size
    if layout.zero == 3:
        group = min(partition.size, SUB_GROUP)
        step = max((HALF + FULL) * group, FULL * group + memory.temporaries)
        memory = memory._replace(temporaries=step)
        held, _ = _cut(arch, parts, regime, layout)
        gradients, bucket = rounded(HALF * partition.size), HALF * layout.bucket
        small = _persistent(parts, regime, layout)
        return Stored(held, (part,), memory, rounded(part.bytes), gradients, bucket, small)
    largest = max(partition.pieces, default=0) * FP64 if optimizer.clipping else 0
    step = max(copies, (FULL - HALF) * partition.size + memory.temporaries, largest)
    held = weights(arch, parts, regime)
    return Stored(held, (part,), memory._replace(temporaries=step), rounded(part.bytes))


def _in_fp32(memory: OptimizerMemory) -> OptimizerMemory:
    """States of fp32 copies: their type is the copies', not the weights'."""
    return memory._replace(
        why=memory.why.replace("the parameter's type", "fp32"), why_zh=memory.why_zh.replace("与参数同精度", "fp32")
    )


def _persistent(parts: Inventory, regime: Regime, layout: Layout) -> int:
    """Bytes of the parameters up to ``stage3_param_persistence_threshold``, gathered once for all."""
    outer = params((*parts.stem, *parts.top), regime, layout, regime.trainable == "all", layer=False)
    everything = [*outer, *(param for layer in layer_params(parts, regime, layout) for param in layer)]
    return blocks(param.numel * HALF for param in everything if param.numel <= layout.persistence)


def megatron_states(arch: Architecture, parts: Inventory, regime: Regime, optimizer: Choice, layout: Layout) -> Stored:
    """Megatron-core's distributed optimizer: one fp32 buffer of all gradients, fp32 copies and states dealt out.

    core/distributed/param_and_grad_buffer.py: the backward adds into the buffer (gradient accumulation fusion).
    """
    partition = partition_of(parts, regime, layout.shards, 1)
    part = Trainable((partition.size,), FULL, 1, False, regime.adapter is not None)
    memory = _in_fp32(memory_of(optimizer, [(1, (part,))]))
    return Stored(weights(arch, parts, regime), (part,), memory, rounded(part.bytes), rounded(FULL * partition.total))
