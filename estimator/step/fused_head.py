"""Trl's fused head: log-probabilities of the scored tokens alone, one tile of logits at a time.

trl 1.16.0, ``add_fused_lm_head`` (trl/trainer/utils.py) and ``ChunkedLogProbFunction`` (trl/kernels): rows of the
hidden states are picked by the label mask, folded tile by tile, and spread over all positions again.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.graph import Backward
from estimator.step.losses import TILE_TOKENS, TILE_VOCAB, head_weight
from estimator.step.model import Model
from estimator.step.tape import BOOL, FULL, LONG, Rows, Tape, Tensor

POLICY = ("entropy", "mean_logits", "is_top1")
"""What trl's DPO trainer asks for beside the log-probabilities; KTO does without the last, GRPO takes the first."""


def log_probs(model: Model, hidden: Tensor, fields: Sequence[str] = ()) -> list[Tensor]:
    """Log-probabilities (fp32, one for each position but the first) of the scored tokens, then the other ``fields``."""
    tape = model.tape
    shifted = ops.part_rows(hidden, "Tm")
    mask = tape.new("Tm", 1, BOOL)
    flat = picked(shifted, mask, "C")
    targets = _targets(tape)
    found = folded(model, flat, targets, fields)
    del flat, targets
    return [spread(x, mask) for x in found]


def picked(x: Tensor, mask: Tensor, rows: Rows) -> Tensor:
    """``x[mask]``: the places, then a copy; the backward writes into zeros of the whole size, out of place."""
    tape = x.tape
    places = tape.new(rows, 2, LONG)
    out = tape.new(rows, x.width, x.itemsize)
    del places
    if not x.needs:
        return out
    whole, width, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        zeros = tape.new(whole, width, size)
        result = tape.new(whole, width, size)
        del zeros
        return (result,)

    return tape.attach(out, (x,), [tape.save(mask)], backward)


def _targets(tape: Tape) -> Tensor:
    places = tape.new("C", 2, LONG)
    targets = tape.new("C", 1, LONG)
    del places
    return targets


def spread(x: Tensor, mask: Tensor) -> Tensor:
    """``zeros.masked_scatter(mask, x)``: positions that are not scored get 0."""
    tape = x.tape
    zeros = tape.new("Tm", 1, x.itemsize)
    out = tape.new("Tm", 1, x.itemsize)
    del zeros
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), [tape.save(mask)], lambda g: (tape.new(rows, width, size),))
    return out


def folded(model: Model, flat: Tensor, targets: Tensor, fields: Sequence[str]) -> list[Tensor]:
    """The autograd function: running statistics and a tile; only the log-probabilities have a gradient."""
    tape, weight = model.tape, head_weight(model)
    compute = 2 if tape.autocast else flat.itemsize
    running = [tape.new("C", 1, FULL) for _ in range(7)]
    tile = tape.new(("min", "C", TILE_TOKENS), TILE_VOCAB, compute)
    tiles = _tiles(model, flat, weight.itemsize, compute, False)
    del tiles
    logarithm = tape.new("C", 1, FULL)
    normaliser = tape.new("C", 1, FULL)
    del logarithm
    result = tape.new("C", 1, FULL)
    others = [_other(tape, name) for name in fields]
    kept = [tape.save(t) for t in (flat, weight, targets, normaliser)]
    kept += [tape.save(others[0])] if "entropy" in fields else []
    del running, tile, normaliser
    if flat.needs or weight.needs:
        tape.attach(result, (flat, weight), kept, _backward(model, flat, weight, compute))
    return [result, *others]


def _other(tape: Tape, name: str) -> Tensor:
    if name == "is_top1":
        sides = [tape.new("C", 1, BOOL) for _ in range(2)]
        out = tape.new("C", 1, BOOL)
        del sides
        return out
    quotient = tape.new("C", 1, FULL) if name == "entropy" else None
    out = tape.new("C", 1, FULL)
    del quotient
    return out


def _tiles(model: Model, flat: Tensor, itemsize: int, compute: int, twice: bool) -> list[Tensor]:
    """A tile's rows and its part of the matrix in the compute type, where theirs is another.

    The next of either is made while the last is alive; of the matrix only where it has a name (``twice``).
    """
    tape = model.tape
    tiles = []
    if flat.itemsize != compute:
        tiles.append(tape.new(("min", "C", TILE_TOKENS), flat.width, compute))
        if itemsize == compute:
            tiles.append(tape.new(("min", ("beyond", "C", TILE_TOKENS), TILE_TOKENS), flat.width, compute))
    if itemsize != compute:
        columns = [min(model.arch.vocab, TILE_VOCAB), min(max(model.arch.vocab - TILE_VOCAB, 0), TILE_VOCAB)]
        sizes = [count * model.arch.hidden for count in columns[: 1 + twice] if count]
        tiles += [tape.new("1", size, compute, "weight_casts") for size in sizes]
    return tiles


def _backward(model: Model, flat: Tensor, weight: Tensor, compute: int) -> Backward:
    tape = model.tape
    rows, width, size = ops.shape_of(flat)
    elements, weight_size = weight.width, weight.itemsize
    need_hidden, need_weight = flat.needs, weight.needs
    shape = Tensor(tape, None, rows, width, size)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grad_hidden = tape.new(rows, width, FULL) if need_hidden else None
        grad_weight = tape.new("1", elements, FULL, "gradients") if need_weight else None
        tile = tape.new(("min", "C", TILE_TOKENS), TILE_VOCAB, compute)
        tiles = _tiles(model, shape, weight_size, compute, True)
        del tiles[2:]
        result = ops.cast(grad_hidden, size) if grad_hidden is not None else None
        weight_result = ops.cast(grad_weight, weight_size) if grad_weight is not None else None
        del tile, tiles
        return result, weight_result

    return backward
