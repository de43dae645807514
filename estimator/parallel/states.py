"""Weights, trainable tensors and optimizer memory of one rank when parameters are shared out."""

from dataclasses import replace

from estimator.architecture import Architecture, Inventory
from estimator.optimizer_states import Choice
from estimator.optimizers import OptimizerMemory, memory_of
from estimator.parallel.layout import Layout
from estimator.parallel.shards import Shape, cut_groups, cut_inventory, piece, stored_regime
from estimator.step.regime import Regime
from estimator.trainables import Group, Trainable, ordered
from estimator.weights import Weights, weights


def sharded_states(
    arch: Architecture, parts: Inventory, regime: Regime, optimizer: Choice, layout: Layout
) -> tuple[Weights, tuple[Trainable, ...], OptimizerMemory]:
    """What the first rank stores, in the types that it is stored in."""
    stored = stored_regime(regime, layout)

    def cut(shape: Shape) -> Shape:
        return piece(shape, layout.shards)

    groups = tuple(cut_groups(ordered(parts, stored), cut))
    trained = tuple(counted(groups))
    adapters = cut_groups(ordered(parts, replace(stored, training=True, trainable="none")), cut)
    held = weights(arch, cut_inventory(parts, cut), stored, counted(tuple(adapters)))
    return held, trained, memory_of(optimizer, groups)


def counted(groups: tuple[Group, ...]) -> list[Trainable]:
    """Every tensor of the groups with how often it occurs."""
    return [tensor._replace(times=times) for times, tensors in groups for tensor in tensors]
