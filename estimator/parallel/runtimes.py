"""The runtime of a layout."""

from estimator.architecture import Architecture, Inventory
from estimator.parallel.coordinator import levels_of
from estimator.parallel.ddp import BucketViews
from estimator.parallel.flat import flat_units
from estimator.parallel.fsdp1 import Fsdp1
from estimator.parallel.fsdp2 import Fsdp2
from estimator.parallel.layout import Layout
from estimator.parallel.pipeline import own_ends
from estimator.parallel.tensor import TensorParallel
from estimator.parallel.units import Units, units_of
from estimator.parallel.zero import Zero12, partition_of
from estimator.parallel.zero3 import Zero3
from estimator.step.regime import Regime
from estimator.step.runtime import Runtime
from estimator.step.tape import Tape
from estimator.trainables import ordered


def runtime_of(
    tape: Tape, arch: Architecture, parts: Inventory, regime: Regime, layout: Layout, units: Units | None = None
) -> Runtime:
    """What a rank of ``layout`` does around the modules of its step; ``units``: those of FSDP2, if they are known."""
    if layout.engine == "fsdp2":
        runtime: Runtime = Fsdp2(tape, layout, units or fsdp2_units(arch, parts, regime, layout), regime.accumulates)
    else:
        runtime = _engine(tape, arch, parts, regime, layout)
    if layout.tensor > 1:
        runtime.tensor = TensorParallel(layout)
    runtime.context, runtime.stage, runtime.expert = layout.context, layout.stage, layout.expert
    return runtime


def fsdp2_units(arch: Architecture, parts: Inventory, regime: Regime, layout: Layout) -> Units:
    """The units of a rank's part of the model."""
    return units_of(own_ends(parts, layout, arch.tied), regime, layout, arch.tied)


def _engine(tape: Tape, arch: Architecture, parts: Inventory, regime: Regime, layout: Layout) -> Runtime:
    if layout.engine == "fsdp1":
        return Fsdp1(tape, layout, flat_units(parts, regime, layout), regime.accumulates)
    if layout.engine == "megatron":
        return BucketViews(tape, (), False)
    if layout.engine == "deepspeed" and layout.zero in (1, 2):
        return Zero12(tape, layout, partition_of(parts, regime, layout.shards, layout.bucket), regime.accumulates)
    if layout.engine == "deepspeed" and layout.zero == 3:
        again = regime.checkpointing in ("full", "offload")
        around = levels_of(parts, layout, arch.tied, again)
        return Zero3(tape, layout, around, len(parts.layers))
    if layout.engine == "ddp" and layout.bucket_view:
        return BucketViews(tape, ordered(parts, regime), regime.accumulates)
    return Runtime()
