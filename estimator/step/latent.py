"""Multi-head latent attention (DeepSeek): compressed queries and keys/values, one shared rotary key for all heads."""

from collections.abc import Callable, Sequence

from estimator.architecture import LatentAttention
from estimator.step import ops
from estimator.step.attention import rotate, scores_rows, sdpa
from estimator.step.model import Layer, Model
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import rate, weighted

Rotation = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Queries and key in, with the two tables; rotated queries and key out."""


def sizes(model: Model) -> LatentAttention:
    """The ranks and widths of the architecture's latent attention."""
    assert model.arch.latent is not None
    return model.arch.latent


def tables(model: Model, itemsize: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary part."""
    tape, size = model.tape, sizes(model).rope_dim
    angles = tape.new("s", size // 2, FULL)
    table = ops.concat([angles, angles])
    del angles
    cos = ops.scale(ops.scale(table))
    sin = ops.scale(ops.scale(table))
    return ops.cast(cos, itemsize), ops.cast(sin, itemsize)


def phases(model: Model) -> Tensor:
    """Complex rotations (complex64) of the rotary part, one a position and a pair."""
    tape, pairs = model.tape, sizes(model).rope_dim // 2
    angles = tape.new("s", pairs, FULL)
    ones = tape.like(angles)
    polar = tape.new("s", pairs, LONG)
    del ones
    out = tape.like(polar)
    del polar, angles
    return out


def rotate_complex(q: Tensor, k: Tensor, table: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs as complex numbers in fp32, times the table (DeepSeek-V2)."""
    q_full, k_full = ops.cast(q, FULL), ops.cast(k, FULL)
    q_out = ops.cast(_strided(times_complex(q_full, table)), q.itemsize)
    k_out = ops.cast(times_complex(k_full, table), k.itemsize)
    return q_out, k_out


def times_complex(x: Tensor, table: Tensor) -> Tensor:
    """A complex product; the backward conjugates the table into a copy."""
    tape = x.tape
    kept = [tape.save(table)] if x.needs else []
    out = tape.like(x)
    if not x.needs:
        return out
    rows, width, size = ops.shape_of(x)
    table_shape = ops.shape_of(table)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        conjugate = tape.new(*table_shape)
        result = tape.new(rows, width, size)
        del conjugate
        return (result,)

    return tape.attach(out, (x,), kept, backward)


def _strided(x: Tensor) -> Tensor:
    """A view whose gradient comes with gaps (a slice of the queries') and is copied before it can be viewed."""
    return copied_back(x)


def copied_back(x: Tensor) -> Tensor:
    """A view of ``x`` whose gradient must be copied to take the layout of ``x``."""
    return ops.fresh_gradient(x)


def rotate_pairs(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotation of neighbouring elements on even and odd slices (DeepSeek-V3, ``rope_interleave``)."""
    q1, q2 = ops.part(q, q.width // 2), ops.part(q, q.width // 2)
    k1, k2 = ops.part(k, k.width // 2), ops.part(k, k.width // 2)
    cos, sin = cos.view(width=cos.width // 2), sin.view(width=sin.width // 2)
    return _pairs(q1, q2, cos, sin), _pairs(k1, k2, cos, sin)


def _pairs(x: Tensor, y: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return ops.concat([
        ops.subtract(ops.mul(x, cos), ops.mul(y, sin)),
        ops.add(ops.mul(y, cos), ops.mul(x, sin)),
    ])  # fmt: skip


def rotate_halves(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Llama's rotation."""
    return rotate(q, cos, sin), rotate(k, cos, sin)


def attention(
    model: Model, layer: Layer, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor | None, rotation: Rotation
) -> tuple[Tensor, Tensor | None]:
    """Compressed projections, rotary parts, keys and values of every head, attention, output; and the scores."""
    latent, heads = sizes(model), model.arch.heads
    q = copied_back(queries(layer, x))
    q_plain, q_rotary = ops.split(q, (heads * latent.nope_dim, heads * latent.rope_dim))
    compressed = layer.linear(x, layer.module_of("kv_a_proj"))
    kv, k_rotary = ops.split(compressed, (latent.kv_rank, latent.rope_dim))
    kv = layer.rms_norm(kv, layer.module_of("kv_a_norm"))
    q_rotary, k_rotary = rotation(q_rotary, k_rotary, *tables)
    kv, k_rotary = layer.cached(kv, k_rotary)
    query = ops.concat([q_plain, q_rotary])
    key, value = expanded(model, layer, kv, k_rotary)
    out, scores = attend(model, query, key, value, mask)
    return layer.linear(out, layer.module_of("o_proj")), scores


def queries(layer: Layer, x: Tensor) -> Tensor:
    """Queries, through a compressed form where the model has a rank for them."""
    if not layer.module_of("q_a_proj"):
        return layer.linear(x, layer.module_of("q_proj"))
    low = layer.rms_norm(layer.linear(x, layer.module_of("q_a_proj")), layer.module_of("q_a_norm"))
    return layer.linear(low, layer.module_of("q_b_proj"))


def expanded(model: Model, layer: Layer, kv: Tensor, k_rotary: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values of every head; a key is assembled in a new tensor from its own part and the shared one."""
    latent, heads = sizes(model), model.arch.heads
    kv = copied_back(layer.linear(kv, layer.module_of("kv_b_proj")))
    k_plain, value = ops.split(kv, (heads * latent.nope_dim, heads * latent.value_dim))
    return assembled(k_plain, spread(k_rotary, heads)), value


def spread(x: Tensor, times: int) -> Tensor:
    """``x.expand`` over the heads: a view; the gradient is summed."""
    tape = x.tape
    out = Tensor(tape, x.storage, x.rows, x.width * times, x.itemsize)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def assembled(first: Tensor, second: Tensor) -> Tensor:
    """An empty tensor filled slice by slice; each copy's backward clones the whole gradient and its slice."""
    tape = first.tape
    width = first.width + second.width
    out = tape.new(first.rows, width, first.itemsize)
    for piece in (first, second):
        out = _filled(out, piece)
    return out


def _filled(base: Tensor, piece: Tensor) -> Tensor:
    tape = base.tape
    if not (base.needs or piece.needs):
        return base
    out = base.detach()
    need_base, whole, shape = base.needs, ops.shape_of(base), ops.shape_of(piece)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        rest = tape.new(*whole)
        grad = tape.new(*shape)
        zeros = tape.new(*shape) if need_base else None
        del zeros
        return rest if need_base else None, grad

    return tape.attach(out, (base, piece), (), backward)


def attend(model: Model, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Attention over assembled queries and keys (by head) and values that are a view; scores if written out."""
    heads, dropout = model.arch.heads, rate(model, model.arch.attention_dropout)
    if model.regime.attention != "eager":
        return sdpa(q, k, v, heads, heads, mask, dropout, by_head=True), None
    q, k = ops.autocast(q), ops.autocast(k)
    scores = ops.scale(ops.matmul(q, k, scores_rows(q), heads))
    if mask is not None:
        scores = ops.add(scores, mask)
    scores = ops.cast(ops.softmax(scores, FULL), q.itemsize)
    scores = ops.dropout(scores, dropout)
    return weighted(model, scores, v), scores
