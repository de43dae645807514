"""What models of an encoder and a decoder share: what layers read, caches, attention of two lengths."""

from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.step import ops
from estimator.step.masks import causal_mask
from estimator.step.model import Layer, Model
from estimator.step.tape import BOOL, FULL, HALF, LONG, Rows, Tensor
from estimator.step.written import folded, rate, unfolded


class Pairs(NamedTuple):
    """Queries and keys of one attention by the names of their row counts: of one row, and of all rows.

    ``causal``: the decoder's order among its own tokens; ``crosses``: its tokens look at the encoder's.
    """

    queries: str
    keys: str
    every: str
    scores: Rows
    causal: bool = False
    crosses: bool = False

    def of_one(self, block: int = 1, odd: str = "filled") -> Rows:
        """Pairs of one row, keys filled to a multiple of ``block``; "odd": as they are where they are no multiple."""
        return odd, self.queries, self.keys, block

    def of_all(self, block: int) -> Rows:
        """Pairs of all rows, keys filled to a multiple of ``block``."""
        return "filled", self.every, self.keys, block

    @property
    def by_row(self) -> Rows:
        """Pairs of every row as the memory-efficient kernel makes a mask's gradient."""
        return "filled", self.every, self.keys, 16


class Stacks:
    """What the layers of the stack at work read: position biases by attention, masks, and what the encoder made."""

    def __init__(self, source: Tensor | None = None, whole: "Stacks | None" = None) -> None:
        self.source, self.whole = source, whole
        self.biases: dict[str, Tensor] = dict(whole.biases) if whole else {}
        self.mask: Tensor | None = whole.mask if whole else None
        self.padding: dict[bool, Tensor | None] = dict(whole.padding) if whole else {}

    def of(self, layer: Layer) -> "Stacks":
        """What one layer is handed; what it makes for the later ones goes to the whole."""
        return Stacks(self.source, self)

    def turn(self, source: Tensor) -> None:
        """The decoder begins."""
        self.source, self.mask = source, None
        self.padding.clear()
        self.biases.clear()


def pairs_of(model: Model, x: Tensor, crosses: bool) -> Pairs:
    """The attention that ``x`` asks for."""
    if x.rows == "S":
        return Pairs("n", "n", "S", "SS")
    if crosses:
        return Pairs("s", "n", "T", "TS", crosses=True)
    stage = bool(model.tape.stage)
    return Pairs("s", "t" if stage else "s", "T", "bss", causal=model.regime.training)


def keys_and_values(
    model: Model, layer: Layer, x: Tensor, names: tuple[str, str], pairs: Pairs
) -> tuple[Tensor, Tensor]:
    """Of the tokens looked at; with a cache those of the encoder are made once, the decoder's own grow."""
    cache = layer.cache
    if pairs.crosses and cache is not None and "keys" in cache.states:
        return cache.states["keys"], cache.states["values"]
    k, v = layer.linear(x, names[0]), layer.linear(x, names[1])
    if cache is None:
        return k, v
    if not pairs.crosses:
        return cache.update(k, v)
    for name, state in (("keys", k), ("values", v)):
        cache.keep(name, model.tape.new("S", state.width, state.itemsize, "kv_cache"))
    return cache.states["keys"], cache.states["values"]


class KernelMask(NamedTuple):
    """The biases as SDPA's kernel takes them. Rows of keys that are no multiple of 8 are padded into one more tensor.

    ``by_row``: rows of its gradient ("" where it wants none). ``beside`` lives while the kernel runs.
    """

    mask: Tensor
    by_row: Rows
    padded: Tensor | None
    beside: Tensor | None


def padding(model: Model, x: Tensor, crosses: bool = False) -> Tensor | None:
    """What is told of padded rows: pairs of tokens of each row, made once for a stack."""
    return model.tape.new(pairs_of(model, x, crosses).scores, 1, BOOL) if model.regime.mask == "padded" else None


def shared(model: Model, hidden: Tensor) -> Stacks:
    """What layers of one stack read; T5's first ones make its biases."""
    around = Stacks()
    around.padding[False] = padding(model, hidden)
    return around


def decoding(model: Model, hidden: Tensor, around: Stacks) -> Tensor:
    """What goes into the decoder, once its layers have their masks."""
    model.around = around
    around.mask = causal_mask(model, hidden) if model.regime.attention == "eager" else None
    around.padding = {crosses: padding(model, hidden, crosses) for crosses in (False, True)}
    return hidden


def variant(arch: Architecture, index: int) -> bool:
    """Whether it is the encoder's last layer, the first of them that gets a gradient."""
    return index == arch.layers - 1


def kernel_mask(model: Model, bias: Tensor, pairs: Pairs, padded: Tensor | None = None) -> KernelMask:
    """The mask that one layer's attention makes of its biases, and of ``padding``: then one of every row."""
    if padded is not None:
        return _of_padded(model, bias, pairs, padded)
    if pairs.causal:
        bias = _ordered(bias, pairs)
    sizes = [] if pairs.crosses else [bias.itemsize]
    if model.tape.autocast and bias.itemsize == FULL:
        sizes.append(HALF)
    for size in sizes[:-1]:
        bias = _made(bias, pairs.of_one(), size)
    if sizes:
        beside = model.tape.new(pairs.of_one(8, "odd"), bias.width, sizes[-1])
        mask, padded = _from(bias, model.tape.new(pairs.of_one(8), bias.width, sizes[-1])), None
    else:
        mask, beside = bias, None
        padded = model.tape.new(pairs.of_one(8, "to fill"), bias.width, bias.itemsize)
    if not mask.needs:
        return KernelMask(mask, "", padded, beside)
    return KernelMask(seen_as(mask, pairs.by_row) if model.regime.single else mask, pairs.by_row, padded, beside)


def _of_padded(model: Model, bias: Tensor, pairs: Pairs, padded: Tensor) -> KernelMask:
    tape, shape = bias.tape, ops.shape_of(bias)
    kept = [tape.save(padded)] if bias.needs else []
    chosen = tape.new(pairs.of_all(1), bias.width, bias.itemsize)
    tape.attach(chosen, (bias,), kept, lambda g: (tape.new(*shape),)) if bias.needs else None
    size = HALF if tape.autocast else bias.itemsize
    mask = _from(chosen, tape.new(pairs.of_all(8), bias.width, size))
    return KernelMask(
        seen_as(mask, pairs.by_row) if mask.needs else mask, pairs.by_row if mask.needs else "", None, None
    )


def seen_as(x: Tensor, rows: Rows) -> Tensor:
    """The same storage under another name of its rows, where one sequence makes them one; so is its gradient."""
    return _from(x, Tensor(x.tape, x.storage, rows, x.width, x.itemsize))


def _ordered(bias: Tensor, pairs: Pairs) -> Tensor:
    """``where(causal, bias, minimum)``."""
    tape = bias.tape
    sides = [tape.new(pairs.queries, 1, LONG), tape.new(pairs.keys, 1, LONG)]
    order = tape.new(pairs.of_one(), 1, BOOL)
    del sides
    minimum = tape.new("1", 1, bias.itemsize)
    kept = [tape.save(order)] if bias.needs else []
    out = tape.like(bias)
    del minimum
    shape = ops.shape_of(bias)

    def backward(g: Tensor) -> tuple[Tensor]:
        zero = tape.new("1", 1, shape[2])
        result = tape.new(*shape)
        del zero
        return (result,)

    return tape.attach(out, (bias,), kept, backward) if bias.needs else out


def _made(bias: Tensor, rows: Rows, size: int) -> Tensor:
    """The biases in one new tensor: head after head, or in another type."""
    return _from(bias, bias.tape.new(rows, bias.width, size))


def _from(bias: Tensor, out: Tensor) -> Tensor:
    tape, shape, same = bias.tape, ops.shape_of(bias), bias.itemsize == out.itemsize

    def backward(g: Tensor) -> tuple[Tensor]:
        return (Tensor(tape, g.storage, *shape) if same else tape.new(*shape),)

    return tape.attach(out, (bias,), (), backward) if bias.needs else out


def written_out(model: Model, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, pairs: Pairs,
                dropout: float) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention in the model's own code: scores, biases, softmax as it comes; the result in token order, the scores."""
    heads = model.arch.heads
    half_k = ops.autocast(k)
    half_q = ops.autocast(q)
    left = folded(model, half_q)
    scores = ops.matmul(left, folded(model, half_k, model.tape.caches and not pairs.crosses), pairs.scores, heads)
    scores = ops.scale(scores)
    for added in (bias, mask):
        if added is not None:
            scores = ops.add(scores, seen_as(added, pairs.scores) if model.regime.single else added)
    scores = ops.softmax(scores)
    scores = ops.dropout(scores, rate(model, dropout))
    v = ops.autocast(v)
    weights = ops.autocast(scores)
    out = ops.matmul(weights, folded(model, v, model.tape.caches and not pairs.crosses), q.rows, v.width)
    return unfolded(model, out), scores
