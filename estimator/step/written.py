"""Attention written out in a model's own code, with the copies that tensor layouts force.

Heads are a transposed view of the projections. ``matmul`` folds batch and heads into one dimension, which a view can
do only for one sequence: with more, queries, keys and values are copied first, and the gradient of the folded result
too (PyTorch 2.13, aten/src/ATen/native/LinearAlgebra.cpp, ``matmul``).
"""

from estimator.step import ops
from estimator.step.model import Model
from estimator.step.tape import FULL, Tensor

ROWS_OF_SCORES = {"T": "bss", "b": "T"}


def rate(model: Model, probability: float) -> float:
    """A dropout probability as this run uses it."""
    return probability if model.regime.training and model.regime.dropout else 0.0


def by_heads(model: Model, x: Tensor) -> Tensor:
    """``x.view(…, heads, size).transpose(1, 2)``: written-out attention gives it a gradient that must be copied back."""
    if model.regime.attention != "eager":
        return x
    tape = x.tape
    out = x.detach()
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def folded(model: Model, x: Tensor) -> Tensor:
    """A transposed view of several sequences as ``bmm`` needs it: in half precision under autocast, and contiguous."""
    x = ops.autocast(x)
    return x if model.regime.single else ops.copy(x)


def scores_of(model: Model, q: Tensor, k: Tensor) -> Tensor:
    """``matmul(q, k^T)`` over transposed views."""
    q, k = folded(model, q), folded(model, k)
    return ops.matmul(q, k, ROWS_OF_SCORES[str(q.rows)], model.arch.heads)


def unfolded(model: Model, x: Tensor) -> Tensor:
    """``x.transpose(1, 2)`` made contiguous; its gradient is copied back when there are several sequences."""
    tape = x.tape
    out = tape.like(x)
    single = model.regime.single
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (g if single else tape.new(rows, width, size),))
    return out


def weighted(model: Model, weights: Tensor, v: Tensor) -> Tensor:
    """``matmul(weights, v)`` in the order of tokens."""
    weights = ops.autocast(weights)
    v = folded(model, v)
    rows, width = ("T" if weights.rows == "bss" else "b"), v.width
    return unfolded(model, ops.matmul(weights, v, rows, width))


def attend(
    model: Model, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, scaled: bool = True, full_softmax: bool = True
) -> Tensor:
    """Scores, mask, softmax (asked for in fp32 with ``full_softmax``), dropout, product with the values."""
    scores = scores_of(model, q, k)
    if scaled:
        scores = ops.scale(scores)
    if mask is not None:
        scores = ops.add(scores, mask)
    scores = ops.softmax(scores, FULL if full_softmax else 0)
    scores = ops.cast(scores, v.itemsize)
    scores = ops.dropout(scores, rate(model, model.arch.attention_dropout))
    return weighted(model, scores, v)
