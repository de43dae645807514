"""Attention written out in a model's own code, with the copies that tensor layouts force.

Heads are a transposed view of the projections. ``matmul`` folds batch and heads into one dimension, which a view can
do only for one sequence: with more, queries, keys and values are copied first, and the gradient of the folded result
too (PyTorch 2.13, aten/src/ATen/native/LinearAlgebra.cpp, ``matmul``).
"""

from functools import partial

from estimator.parallel.context import ring_attention
from estimator.step import ops
from estimator.step.attention import repeated, sdpa
from estimator.step.model import Model
from estimator.step.tape import FULL, Tensor

CACHED = ("K", "W")
"""Rows of keys and values that come from a cache in a decode step."""
ROWS_OF_SCORES = {"T": "bss", "b": "T"}


def rate(model: Model, probability: float) -> float:
    """A dropout probability as this run uses it."""
    return probability if model.regime.training and model.regime.dropout else 0.0


def by_heads(model: Model, x: Tensor) -> Tensor:
    """``x.view(…, heads, size).transpose(1, 2)``: written-out attention gives a gradient that must be copied back."""
    return by_token(x) if model.regime.attention == "eager" else x


def keys_by_heads(model: Model, x: Tensor) -> Tensor:
    """As ``by_heads`` for keys of their own linear: their gradient is transposed, which one sequence can view."""
    return x if model.regime.single else by_heads(model, x)


def by_token(x: Tensor) -> Tensor:
    """A view by heads of something whose gradient always comes back head after head: it is copied to token order."""
    return ops.fresh_gradient(x)


def folded(model: Model, x: Tensor, by_head: bool = False) -> Tensor:
    """What ``bmm`` needs of several sequences: a transposed view is copied, what lies ``by_head`` is not."""
    single = model.tape.single if x.rows in CACHED else model.regime.single
    return x if single or by_head else ops.copy(x)


def cached_by_head(model: Model) -> bool:
    """A cache concatenates keys and values head after head, one for each query head."""
    return model.tape.caches and model.arch.kv_heads == model.arch.heads and model.arch.latent is None


def scores_of(model: Model, q: Tensor, k: Tensor, q_by_head: bool = False, k_by_head: bool = False) -> Tensor:
    """``matmul(q, k^T)``, in half precision under autocast."""
    half_k = ops.autocast(k)
    half_q = ops.autocast(q)
    k_by_head = k_by_head or cached_by_head(model)
    q = folded(model, half_q, q_by_head)
    return ops.matmul(q, folded(model, half_k, k_by_head), ROWS_OF_SCORES[str(q.rows)], model.arch.heads)


def unfolded(model: Model, x: Tensor) -> Tensor:
    """``x.transpose(1, 2)`` made contiguous; its gradient is copied back when there are several sequences."""
    tape = x.tape
    out = tape.like(x)
    single = model.regime.single
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (g if single else tape.new(rows, width, size),))
    return out


def weighted(model: Model, weights: Tensor, v: Tensor, by_head: bool = False) -> Tensor:
    """``matmul(weights, v)``, head after head; its casts and copies end with it."""
    rows, width = ("T" if weights.rows == "bss" else "b"), v.width
    v = ops.autocast(v)
    by_head = by_head or cached_by_head(model)
    weights = ops.autocast(weights)
    return ops.matmul(weights, folded(model, v, by_head), rows, width)


def attend(
    model: Model,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    softmax: str = "full",
    by_head: bool = False,
    capped: bool = False,
    attention: str = "",
    kv_heads: int = 0,
) -> tuple[Tensor, Tensor | None]:
    """Attention as the run asks for it: the result in token order, and what written-out attention returns beside it.

    ``softmax``: asked for in fp32 and cast back in one expression ("full"), cast back after it ("cast"), or as it comes
    ("plain"). ``by_head``: queries and keys lie head after head (a concatenation made them), not as views of a linear.
    ``capped``: scores pass a soft cap. ``attention`` overrides the run's, for families with one implementation only.
    """
    if model.tape.core is not None:
        again = partial(
            attend,
            model,
            mask=mask,
            softmax=softmax,
            by_head=by_head,
            capped=capped,
            attention=attention,
            kv_heads=kv_heads,
        )
        return model.tape.core(lambda q, k, v: again(q, k, v)[0], q, k, v), None
    arch = model.arch
    if model.runtime.context > 1:
        size = q.width // arch.heads
        ring = ring_attention(q, k, by_token(v), arch.heads, kv_heads or arch.kv_heads, size, model.runtime.context)
        return ops.copy(ring), None
    dropout, kv_heads = rate(model, arch.attention_dropout), kv_heads or arch.kv_heads
    if "repeated-keys" in model.regime.quirks:
        k, v, kv_heads = repeated(k, arch.heads, kv_heads), repeated(v, arch.heads, kv_heads), arch.heads
    if (attention or model.regime.attention) != "eager":
        return sdpa(q, k, v, arch.heads, kv_heads, mask, dropout, by_head=by_head), None
    k, v = repeated(k, arch.heads, kv_heads), repeated(v, arch.heads, kv_heads)
    copied = 1 < kv_heads < arch.heads
    scores = scores_of(model, q, k, by_head, copied or (by_head and kv_heads == arch.heads))
    scores = ops.scale(scores)
    if capped:
        scores = ops.scale(scores)
        scores = ops.tanh(scores)
        scores = ops.scale(scores)
    if mask is not None:
        scores = ops.add(scores, mask)
    scores = ops.cast(ops.softmax(scores, FULL), q.itemsize) if softmax == "full" else ops.softmax(scores)
    if softmax == "cast":
        scores = ops.cast(scores, v.itemsize)
    scores = ops.dropout(scores, dropout)
    return unfolded(model, weighted(model, scores, v, copied)), scores
