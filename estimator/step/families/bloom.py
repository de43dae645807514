"""BLOOM: its own attention with alibi as the product's bias, a GELU with its own backward, dropout-and-add."""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.families.classic import Around, dropped, normed, shared
from estimator.step.masks import tokens_so_far, written_out_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import rate, unfolded

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Embeddings and their norm, the alibi of every sequence, the mask."""
    tokens = embedded(model, "word_embeddings.weight", ids)
    hidden = model.stem.layer_norm(tokens, "word_embeddings_layernorm")
    slopes = model.tape.new("1", model.arch.heads, FULL)
    model.held += [tokens, slopes]
    bias = alibi(model, hidden.itemsize)
    model.around = Around(None, written_out_mask(model, tokens), bias)
    return hidden


def alibi(model: Model, itemsize: int) -> Tensor:
    """Slopes times positions of one sequence, repeated for the batch, cast to the residual stream's type."""
    tape, heads = model.tape, model.arch.heads
    rows = tokens_so_far(model)
    counted = tape.new("sK" if tape.stage else "s", 1, LONG)
    single = tape.new(counted.rows, heads, FULL)
    del counted
    repeated = tape.new(rows, heads, FULL)
    out = ops.cast(repeated, itemsize)
    del single
    return out


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; each half adds the residual stream itself. Its weights live until the next block has returned."""
    norm = normed(model, layer, x, "input_layernorm")
    residual = x
    with model.tape.inside("attention"):
        attended, weights = attention(model, layer, norm, residual, around)
    norm = normed(model, layer, attended, "post_attention_layernorm")
    residual = attended
    with model.tape.inside("mlp"):
        out = mlp(model, layer, norm, residual)
    model.held[2:] = [weights]
    return out


def attention(model: Model, layer: Layer, x: Tensor, residual: Tensor, around: Around) -> tuple[Tensor, Tensor]:
    """Fused projection by heads, scores on top of alibi, output projection, dropout and add."""
    arch = model.arch
    fused = layer.linear(x, "self_attention.query_key_value")
    q, k, v = by_parts(fused)
    k, v = layer.cached(k, v)
    q, k, v = folded_heads(model, q), folded_keys(model, k), folded_keys(model, v)
    scores = biased_scores(model, around.tables[0], q, k)
    weights = ops.add(scores, around.mask) if around.mask is not None else scores
    probabilities = ops.cast(ops.softmax(weights, FULL), q.itemsize)
    probabilities = ops.dropout(probabilities, rate(model, arch.attention_dropout))
    context = product(model, probabilities, v)
    context = unfolded(model, context)
    out = layer.linear(context, "self_attention.dense")
    out = dropout_add(model, out, residual)
    del fused, context
    return out, probabilities


def by_parts(qkv: Tensor) -> list[Tensor]:
    """Queries, keys and values of each head side by side: three selections, whose backward fills the whole each."""
    return [ops.part(qkv, qkv.width // 3) for _ in range(3)]


def folded_heads(model: Model, x: Tensor) -> Tensor:
    """``reshape(batch * heads, …)``: a view of one sequence, a copy of several."""
    return x if model.regime.single else ops.copy(x)


def folded_keys(model: Model, x: Tensor) -> Tensor:
    """As ``folded_heads``; what a cache concatenated lies head after head."""
    return x if model.tape.caches else folded_heads(model, x)


def biased_scores(model: Model, bias: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """``alibi.baddbmm(q, k)``: keeps both factors; each gradient is a product and its multiple."""
    k = ops.autocast(k)
    q = ops.autocast(q)
    bias = ops.autocast(bias)
    tape = q.tape
    kept = [tape.save(t) for t, wanted in ((q, k.needs), (k, q.needs)) if wanted]
    out = tape.new("bss", model.arch.heads, q.itemsize)
    del bias
    if not (q.needs or k.needs):
        return out
    shapes = [ops.shape_of(t) if t.needs else None for t in (q, k)]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        return [ops.scale(tape.new(*shape)) if shape else None for shape in shapes]

    return tape.attach(out, (q, k), kept, backward)


def product(model: Model, weights: Tensor, v: Tensor) -> Tensor:
    """``bmm(weights, v)``."""
    v = ops.autocast(v)
    return ops.matmul(ops.autocast(weights), v, "T", v.width)


def dropout_add(model: Model, x: Tensor, residual: Tensor) -> Tensor:
    """Dropout, then the residual stream."""
    out = dropped(model, x)
    return ops.add(residual, out)


def mlp(model: Model, layer: Layer, x: Tensor, residual: Tensor) -> Tensor:
    """Up, GELU, down, dropout and add."""
    x = bloom_gelu(layer.linear(x, "mlp.dense_h_to_4h"))
    out = layer.linear(x, "mlp.dense_4h_to_h")
    return dropout_add(model, out, residual)


def bloom_gelu(x: Tensor) -> Tensor:
    """A function of its own: the forward keeps only the input, the backward writes the derivative out."""
    tape = x.tape
    free = x.detach()
    out = ops.mul(ops.scale(free), ops.shift(_inner(free)))
    if not x.needs:
        return out
    rows, width, size = ops.shape_of(x)
    kept = [tape.save(x)]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        return (_derivative(Tensor(tape, None, rows, width, size), g),)

    return tape.attach(out, (x,), kept, backward)


def _inner(x: Tensor) -> Tensor:
    """``tanh(c * x * (1 + d * x * x))``."""
    return ops.tanh(ops.mul(ops.scale(x), ops.shift(ops.mul(ops.scale(x), x))))


def _derivative(x: Tensor, g: Tensor) -> Tensor:
    """``(0.5 * x * ((1 - t * t) * (c + e * x * x)) + 0.5 * (1 + t)) * g`` with ``t`` the tanh."""
    t = _inner(x)
    slope = ops.add(
        ops.mul(
            ops.scale(x),
            ops.mul(ops.shift(ops.mul(t, t)), ops.shift(ops.mul(ops.scale(x), x))),
        ),
        ops.scale(ops.shift(t)),
    )
    return ops.mul(slope, g.detach())


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "ln_f")
