"""One optimisation step traced: forward, loss and backward of a model whose alike layers are traced once."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from estimator.architecture import Architecture, Inventory
from estimator.parallel.layout import ONE_CARD, Layout
from estimator.parallel.runtimes import runtime_of
from estimator.parallel.units import Units
from estimator.step.assembly import Builder, Recording
from estimator.step.batches import batch_inputs
from estimator.step.checkpointing import checkpointed, prepare, wanted
from estimator.step.families import family_of
from estimator.step.fused_lora import shared_buffer
from estimator.step.fused_update import update_of
from estimator.step.losses import LOSSES
from estimator.step.masks import given_mask
from estimator.step.model import Model, wants_gradient
from estimator.step.ops import cast, scale
from estimator.step.regime import Regime
from estimator.step.runtime import Runtime
from estimator.step.tape import BOOL, FULL, HALF, LONG, Tape, Tensor
from estimator.step.towers import Images, images_of, merged


def layer_classes(
    inventory: Inventory, regime: Regime, variant: Callable[[int], object] = lambda index: None
) -> list[tuple[object, ...]]:
    """A key per layer; layers with one key leave the same segments. ``variant`` tells layers of one shape apart.

    The last stands alone, and the lowest of each kind: with its backward go the masks and tables of that kind. What
    runs again by a reentrant checkpoint holds them until the graph goes: then they go with the highest of each kind.
    Layers that are checkpointed and layers that are not hold them apart.
    """
    total = len(inventory.layers)
    kinds = [(kind, variant(index), _skipped_around(regime, index)) for index, kind in enumerate(inventory.layers)]
    lowest_of = {kind: index for index, kind in reversed(list(enumerate(kinds)))}
    pins = regime.reentrant or regime.checkpointing == "selective-attention"
    highest_of = {kind: index for index, kind in enumerate(kinds)} if pins else {}
    lowest = total - regime.trainable_layers if regime.trainable == "last" else -1
    keys: list[tuple[object, ...]] = []
    for index, kind in enumerate(kinds):
        edge = 1 if index == lowest_of[kind] else 2 if index == total - 1 else 3 if index == lowest else 0
        keys.append((*kind, edge, int(index == highest_of.get(kind)), int(index >= lowest)))
    return keys


def _skipped_around(regime: Regime, index: int) -> int:
    """Which of a layer, the one before it and the one behind it are passed over, as bits."""
    return sum(_skipped(regime, index + side) << place for place, side in enumerate((0, -1, 1)))


def _skipped(regime: Regime, index: int) -> bool:
    """Whether a layer is passed over where every N-th is checkpointed."""
    return regime.checkpointing == "every" and not wanted(regime, index)


def trace_training(
    arch: Architecture, inventory: Inventory, regime: Regime, layout: Layout = ONE_CARD, units: Units | None = None
) -> Recording:
    """One (the last) micro-step's forward, loss and backward recorded, on one rank of ``layout``.

    ``units`` of FSDP2, where they are not those of the layout.
    """
    if regime.stage:
        # Imported late: most steps are plain ones.
        from estimator.step.stages import trace_stage

        return trace_stage(arch, inventory, regime, layout, units)
    tape = Tape(autocast=regime.autocast, merge_in_place=regime.merge_in_place)
    runtime = runtime_of(tape, arch, inventory, regime, layout, units)
    classes, order = traced_layers(arch, inventory, regime, runtime)
    model = Model(tape, arch, inventory, regime, runtime)
    prepare(tape, regime)
    model.images = images = images_of(tape, model, len(order) + 2)
    _run(tape, model, order)
    return _assemble(tape, classes, len(order), images, second_stack(arch))


def traced_layers(
    arch: Architecture, inventory: Inventory, regime: Regime, runtime: Runtime
) -> tuple[list[int], list[int]]:
    """For every layer the segment that it leaves, and the layers that are traced for it."""
    variant = getattr(family_of(arch.model_type, regime.quirks), "variant", lambda arch, index: None)
    classes = layer_classes(inventory, regime, partial(variant, arch))
    classes = [(*key, *runtime.neighbours(index)) for index, key in enumerate(classes)]
    traced = {key: index for index, key in reversed(list(enumerate(classes)))}
    order = beside_their_like(sorted(traced.values()), regime, len(classes))
    segments_of = {key: order.index(index) + 1 for key, index in traced.items()}
    return [segments_of[key] for key in classes], order


def beside_their_like(order: list[int], regime: Regime, total: int) -> list[int]:
    """Where every N-th layer is checkpointed, traced layers have such neighbours as in the model.

    A layer may find what the one beside it left (attention that is written out): whether that one is checkpointed
    decides what.
    """
    while regime.checkpointing == "every":
        missing = {
            index + side
            for place, index in enumerate(order)
            for side in (-1, 1)
            if 0 <= index + side < total and not _is_like(order, place + side, regime, index + side)
        }
        if not missing:
            break
        order = sorted({*order, *missing})
    return order


def _is_like(order: list[int], place: int, regime: Regime, index: int) -> bool:
    return 0 <= place < len(order) and _skipped(regime, order[place]) == _skipped(regime, index)


def _run(tape: Tape, model: Model, order: list[int]) -> None:
    tape.mark("forward")
    ids, labels = tape.new("S" if second_stack(model.arch) else "T", 1, LONG), tape.new("T", 1, LONG)
    buffer = shared_buffer(model)
    model.given_mask, inputs = given_mask(model), batch_inputs(model)
    scaler = [tape.new("1", 1, FULL, "other") for _ in range(2)] if model.regime.scaler else []
    images: Images | None = model.images
    if images is not None:
        images.given()
    previous = _previous_outputs(tape, model)
    model.runtime.begin(model)
    loss, logits = _forward(tape, model, order, ids, labels)
    del previous
    tape.end_autocast()
    tape.segment = len(order) + 1
    tape.mark("outputs")
    if model.regime.outputs_to_full and logits is not None:
        converted = cast(logits.detach(), FULL)
        source = cast(model.source.detach(), FULL) if model.source is not None else None
        logits = converted
        del converted, source
    model.source = None
    if not model.regime.outputs_kept:
        logits = None
    _let_returned_go(tape, model)
    if images is not None:
        images.clear()
        images.pixels.clear()
    del ids, labels, inputs
    model.given_mask = model.given_positions = None
    tape.item = "other"
    tape.mark("backward")
    root = scale(loss) if model.regime.scaler else loss
    update = update_of(tape, model.regime.update) if model.regime.update else None
    tape.on_gradient = update or tape.on_gradient
    tape.backward(root)
    if update is not None:
        update(None)
    model.runtime.after_backward()
    del loss, root
    tape.unpin()
    if scaler:
        scaler.append(tape.new("1", 1, FULL, "other"))
    tape.mark("end")
    del logits, model, scaler, buffer


def _let_returned_go(tape: Tape, model: Model) -> None:
    """Keys and values among the outputs: accelerate turns half ones to fp32 too, then they all go."""
    top, segments = tape.segment, sorted({segment for segment, _ in model.returned})
    copies = []
    for segment in segments if model.regime.outputs_to_full else []:
        tape.segment = segment
        tape.mark("converted")
        halves = [held for number, held in model.returned if number == segment and held.itemsize == HALF]
        copies += [(segment, tape.new(held.rows, 2 * model.arch.kv_width, FULL)) for held in halves]
    for segment in segments:
        tape.segment = segment
        tape.mark("let go")
        model.returned = [entry for entry in model.returned if entry[0] != segment]
        copies = [entry for entry in copies if entry[0] != segment]
    if segments:
        tape.segment = top
        tape.mark("outputs")


def _previous_outputs(tape: Tape, model: Model) -> Tensor | None:
    """A loop that keeps its outputs holds the last step's until this step's replace them."""
    if not model.regime.outputs_kept or model.regime.loss != "standard":
        return None
    half = model.regime.autocast or model.regime.itemsize == HALF
    return tape.new("T", model.arch.vocab, HALF if half else FULL, "logits_loss")


def _forward(tape: Tape, model: Model, order: list[int], ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    hidden = backbone(tape, model, order, ids)
    if model.runtime.stage == "first":
        model.runtime.after_forward(hidden)
        return hidden, None
    tape.mark("loss")
    tape.item = "logits_loss"
    loss_of = getattr(family_of(model.arch.model_type, model.regime.quirks), "loss", None) or LOSSES[model.regime.loss]
    result: tuple[Tensor, Tensor | None] = loss_of(model, hidden, labels)
    model.runtime.after_forward(result[0])
    return result


def backbone(tape: Tape, model: Model, order: list[int], ids: Tensor, piece: str = "forward") -> Tensor:
    """Stem, layers and final norm; every part is a piece of the timeline of this name."""
    family = family_of(model.arch.model_type, model.regime.quirks)
    hidden: Tensor = family.stem(model, ids) if model.runtime.stage != "last" else received(model)
    if model.asks_for_input_gradients and not hidden.needs:
        hidden = wants_gradient(hidden)
    if model.images is not None:
        hidden = merged(model.images, hidden, piece)
    model.runtime.after_stem(hidden)
    around = family.shared(model, hidden)
    if not model.held:
        model.held.append(hidden)
    turn = second_stack(model.arch)
    for position, index in enumerate(order):
        if turn and index == turn:
            tape.segment = len(order) + 2
            tape.mark(piece)
            family.encoded(model, hidden, around)
            hidden = family.target(model, shifted_ids(model), around)
        tape.segment = position + 1
        tape.mark(piece)
        hidden = _layer(tape, model, family, index, hidden, around)
    tape.segment = len(order) + 1
    tape.mark(piece)
    if model.runtime.stage != "first":
        hidden = family.top(model, model.runtime.before_top(hidden))
    del around
    model.held.clear()
    if model.images is not None:
        model.images.features.clear()
    return hidden


def second_stack(arch: Architecture) -> int:
    """The first layer of the decoder behind an encoder; 0 in models of one stack."""
    return arch.layers if arch.kind == "encoder-decoder" else 0


def shifted_ids(model: Model) -> Tensor:
    """Labels shifted to the right: new zeros, a clone to fill them with, and where -100 becomes padding."""
    tape = model.tape
    ids = tape.new("T", 1, LONG)
    clone = tape.new("T", 1, LONG)
    del clone
    padded = tape.new("T", 1, BOOL)
    del padded
    model.given.append(ids)
    return ids


def received(model: Model) -> Tensor:
    """What a pipeline's earlier stage hands on: it wants a gradient, which goes back."""
    half = HALF if model.regime.autocast else model.regime.itemsize
    return wants_gradient(model.tape.new("T", model.arch.hidden, half))


def _layer(tape: Tape, model: Model, family: ModuleType, index: int, hidden: Tensor, around: Any) -> Tensor:
    layer = model.layer(index)
    seen = layer.sees(around)
    regime, runtime = model.regime, model.runtime

    def call(x: Tensor) -> Tensor:
        out: Tensor = family.layer(model, layer, x, seen)
        return out

    def unit(x: Tensor, inner: Callable[[Tensor], Tensor]) -> Tensor:
        if tape.replaying:
            return inner(x)
        out = inner(runtime.before_layer(layer, x))
        runtime.after_layer(layer, out)
        return out

    if not (wanted(regime, index) and hidden.needs | layer.trains):
        return unit(hidden, call)
    if runtime.outside:
        return checkpointed(tape, regime, lambda x: unit(x, call), hidden)
    return unit(hidden, lambda x: checkpointed(tape, regime, call, x))


def _assemble(tape: Tape, numbers: list[int], traced: int, images: Images | None, turn: int) -> Recording:
    stem, top = 0, traced + 1
    if turn:
        numbers = [*numbers[:turn], traced + 2, *numbers[turn:]]
    builder = Builder(tape)
    builder.one("forward", stem)
    if images is not None:
        images.add(builder, "forward")
    builder.many("forward", numbers)
    builder.one("forward", top)
    builder.one("loss", top)
    for number in (stem, top):
        builder.one("loss", number, "release")
    if images is not None:
        images.add(builder, "loss", "release")
    builder.many("loss", numbers, "release")
    builder.one("loss", top, "outputs")
    builder.many("loss", numbers, "converted")
    builder.many("loss", numbers, "let go")
    builder.one("backward", top)
    builder.many("backward", numbers[::-1])
    if images is not None:
        images.add(builder, "backward", back=True)
    builder.one("backward", stem)
    builder.many("backward", [stem, *numbers], "unpin")
    return builder.recording()
