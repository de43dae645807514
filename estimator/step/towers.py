"""Images in a step: the tower's layers, the projector, and the merge into the token embeddings.

transformers 5.24: models/llava, clip, siglip, gemma3, paligemma, qwen2_vl, qwen2_5_vl, qwen3_vl. Rows: "I" tiles, "V"
tower tokens of all of them, "P" patches (without class tokens), "M" merged patches, "F" features that enter the row.
"""

from functools import partial

from estimator.step import ops
from estimator.step.assembly import Builder
from estimator.step.checkpointing import checkpointed
from estimator.step.model import Layer, Model, wants_gradient
from estimator.step.quantised import BITSANDBYTES
from estimator.step.regime import Regime
from estimator.step.tape import BOOL, FULL, LONG, Tape, Tensor
from estimator.step.tower_layers import BLOCKS, Around, rotary_tables
from estimator.step.tower_projectors import PROJECT, deep_merger
from estimator.vision.parts import tower_parts
from estimator.vision.tower import Tower, tower_of


class Images:
    """The tower of a model: its traced layers, and what outlives the merge."""

    def __init__(self, tape: Tape, model: Model, tower: Tower, first: int) -> None:
        arch, regime = model.arch, model.regime
        parts, projector = tower_parts(arch)
        self.tape, self.tower, self.first, self.regime = tape, tower, first, regime
        self.trains = regime.tower == "trained"
        own = tower_regime(regime)
        self.stem = Layer(tape, own, [*parts.stem, *parts.top], None, self.trains)
        self.projector = Layer(tape, own, projector, None, regime.trainable == "all")
        self.block = parts.kinds[0].weights
        self.own = own
        count = tower.layers
        self.traced = sorted({0, min(1, count - 1), max(count - 1 - tower.idle, 0), count - 1})
        self.layers: list[Layer] = []
        self.kept: list[Tensor] = []
        self.features: list[Tensor] = []
        self.pixels: list[Tensor] = []

    @property
    def numbers(self) -> list[int]:
        """The segment of every layer of the tower."""
        middle = self.traced.index(min(1, self.tower.layers - 1))
        places = [self.traced.index(i) if i in self.traced else middle for i in range(self.tower.layers)]
        return [self.first + 1 + place for place in places]

    @property
    def last(self) -> int:
        """The segment of projector and merge."""
        return self.first + 1 + len(self.traced)

    def given(self) -> None:
        """Pixels of the batch, in the tower's type."""
        self.pixels = [self.tape.new("P", self.tower.patch_values, self.regime.itemsize)]

    def clear(self) -> None:
        """The model's outputs go, and with them what the tower gave out."""
        self.kept.clear()
        self.features.clear()

    def add(self, builder: Builder, phase: str, piece: str = "", *, back: bool = False) -> None:
        """Append the tower's pieces in order, or the other way round."""
        order = ([self.first], self.numbers, [self.last])
        for numbers in order[::-1] if back else order:
            builder.many(phase, numbers[::-1] if back else numbers, piece)

    def layer(self) -> Layer:
        """One layer's parameters, which live as long as the step."""
        self.layers.append(Layer(self.tape, self.own, self.block, None, self.trains))
        return self.layers[-1]


def tower_regime(regime: Regime) -> Regime:
    """How the tower computes: its own parameters, packed where bitsandbytes packs every linear."""
    packed = regime.quantised if regime.quantised in BITSANDBYTES else None
    return regime._replace(adapter=None, quantised=packed, trainable="all", dropout=False)


def images_of(tape: Tape, model: Model, first: int) -> Images | None:
    """The tower of a step whose rows carry images."""
    tower = tower_of(model.arch)
    return Images(tape, model, tower, first) if tower is not None and model.regime.tower else None


def merged(images: Images, text: Tensor, piece: str) -> Tensor:
    """Token embeddings with the images' features in their places."""
    tape, tower = images.tape, images.tower
    tape.segment = images.first
    tape.mark(piece)
    hidden = [_stem(images)]
    around = Around(*rotary_tables(tape, tower)) if tower.form.startswith("qwen") else Around(None, None)
    images.kept.append(hidden[0])
    chosen: list[Tensor] = []
    shallow: list[Tensor] = []
    for place, index in enumerate(images.traced):
        tape.segment = images.first + 1 + place
        tape.mark(piece)
        hidden[0] = _block(images, images.layer(), hidden[0], around)
        if place == 0 and tower.deep:
            shallow.append(hidden[0])
        if index == tower.layers - 1 - tower.idle:
            chosen.append(hidden[0])
            images.kept[:] = [images.kept[0], hidden[0]]
    images.kept.append(hidden.pop())
    images.kept.pop(0)
    tape.segment = images.last
    tape.mark(piece)
    inner = [deep_merger(images.projector, tower, shallow[0], number) for number in range(tower.deep)]
    shallow.clear()
    result = PROJECT[tower.projector](images.projector, images.stem, tower, chosen.pop())
    return _scattered(images, text, result, inner)


def _stem(images: Images) -> Tensor:
    """Patches through a convolution, positions, and CLIP's class token and norm."""
    tape, tower, stem = images.tape, images.tower, images.stem
    hidden = _convolution(images) if tower.form == "clip" else _convolution(images).view("V")
    if images.regime.checkpointing != "none" and not hidden.needs:
        hidden = wants_gradient(hidden)
    if tower.form == "clip":
        hidden = _with_class(stem, hidden)
    if tower.table and not tower.form.startswith("qwen"):
        places = Tensor(tape, None, "v", 1, LONG)  # a buffer of the model
        table = ops.embedding(stem.weight("embeddings.position_embedding.weight"), "v", tower.hidden, places)
        hidden = ops.add(hidden, table)
        del table
    elif tower.table:
        hidden = ops.add(hidden, _interpolated(tape, tower, stem))
    if tower.form == "qwen2_5":
        hidden = _picked(hidden)
    return stem.layer_norm(hidden, "pre_layrnorm") if tower.form == "clip" else hidden


def _convolution(images: Images) -> Tensor:
    tape, tower = images.tape, images.tower
    weight = images.stem.weight("embeddings.patch_embedding.weight")
    pixels = images.pixels[0]
    kept = [tape.save(pixels)] if weight.needs else []
    out = tape.new("P", tower.hidden, weight.itemsize)
    if weight.needs:
        elements, size = weight.width, weight.itemsize
        tape.attach(out, (weight,), kept, lambda g: (tape.new("1", elements, size, "gradients"),))
    return out


def _with_class(stem: Layer, patches: Tensor) -> Tensor:
    tape, width = patches.tape, patches.width
    leaf = stem.weight("embeddings.class_embedding")
    out = tape.new("V", width, patches.itemsize)
    if patches.needs or leaf.needs:
        size = leaf.itemsize

        def backward(g: Tensor) -> list[Tensor | None]:
            whole = Tensor(tape, g.storage, "P", width, g.itemsize) if patches_need else None
            return [whole, tape.new("1", width, size, "gradients") if leaf_needs else None]

        patches_need, leaf_needs = patches.needs, leaf.needs
        tape.attach(out, (patches, leaf), (), backward)
    return out


def _interpolated(tape: Tape, tower: Tower, stem: Layer) -> Tensor:
    """Qwen 3's table of positions, resampled from four neighbours in fp32."""
    weight = stem.weight("embeddings.position_embedding.weight")
    near = ops.embedding(weight, "V", 4 * tower.hidden, tape.new("V", 4, LONG))
    weighted = ops.scale(ops.cast(near, FULL))
    del near
    total = ops.part(weighted, tower.hidden)
    summed = tape.new("V", tower.hidden, FULL)
    if total.needs:
        rows, width, size = ops.shape_of(total)
        tape.attach(summed, (total,), (), lambda g: (tape.new(rows, width, size),))
    return ops.cast(summed, weight.itemsize)


def _picked(x: Tensor) -> Tensor:
    """``x[index]``: a copy in another order."""
    return ops.fresh_gradient(ops.copy(x))


def _block(images: Images, layer: Layer, x: Tensor, around: Around) -> Tensor:
    call = partial(BLOCKS[images.tower.form], images.tower, layer, around=around)
    if images.regime.checkpointing in ("full", "offload") and (x.needs or images.trains):
        return checkpointed(images.tape, images.regime, call, x)
    out: Tensor = call(x)
    return out


def _scattered(images: Images, text: Tensor, features: Tensor, inner: list[Tensor]) -> Tensor:
    """``text.masked_scatter(mask, features)``; the features, joined into one tensor, live until the model returns.

    Features of inner layers (Qwen 3-VL adds them behind the first layers of the language model) live as long.
    """
    tape = images.tape
    images.kept += [features, *inner]
    joined = tape.like(features)
    if features.needs:
        shape = ops.shape_of(features)
        tape.attach(joined, (features,), (), lambda g: (tape.new(*shape),))
    images.features.append(joined)
    mask = tape.new("T", 1, BOOL)
    kept = [tape.save(mask)]
    out = tape.like(text)
    inputs = [text, joined, *inner]
    if any(x.needs for x in inputs):
        shapes = [ops.shape_of(x) if x.needs else None for x in inputs]
        tape.attach(out, inputs, kept, lambda g: [tape.new(*shape) if shape else None for shape in shapes])
    return out
