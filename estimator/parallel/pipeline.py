"""Pipeline parallel: a stage's layers, and the micro-batches whose activations it keeps at a time."""

from estimator.architecture import Inventory
from estimator.parallel.layout import Layout
from estimator.step.regime import Regime


def stage_layers(layers: int, layout: Layout) -> int:
    """Layers of the first stage (rounded up) or of the last one (which has the head besides)."""
    if layout.stage == "last":
        return max(layers // layout.pipeline, 1)
    return -(-layers // layout.pipeline)


def traced_parts(parts: Inventory, layout: Layout) -> Inventory:
    """The stage's layers; embedding and head stay in sight."""
    if not layout.stage:
        return parts
    count = stage_layers(len(parts.layers), layout)
    return parts._replace(layers=parts.layers[:count] if layout.stage == "first" else parts.layers[-count:])


def stored_parts(parts: Inventory, layout: Layout, tied: bool) -> Inventory:
    """What the stage stores: the first has the embedding, the last the final norm and the head (a tied one copied)."""
    return own_ends(traced_parts(parts, layout), layout, tied)


def own_ends(parts: Inventory, layout: Layout, tied: bool) -> Inventory:
    """The stage's layers without the ends that other stages have."""
    if layout.stage == "first":
        return parts._replace(top=())
    return parts._replace(stem=()) if layout.stage == "last" and not tied else parts


def moments(regime: Regime, layout: Layout, steps: int) -> list[tuple[Regime, Layout]]:
    """When a stage may be fullest under FSDP2, where whole gradients wait for the last of its micro-batches.

    As many as ever in flight, with gradients of earlier ones if there are any by then; else also after the first
    backward.
    """
    flight = layout.in_flight
    if layout.engine != "fsdp2":
        return [(regime, layout)]
    waiting = regime._replace(accumulates=True)
    if steps > flight:
        return [(waiting, layout)]
    later = [(waiting, layout._replace(in_flight=flight - 1))] if flight > 1 else []
    return [(regime._replace(accumulates=False), layout), *later]
