"""BLOOM: its own attention with alibi as the product's bias, a GELU with its own backward, dropout-and-add."""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.families.classic import Around, dropped, normed, shared
from estimator.step.masks import causal_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import rate, unfolded

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Embeddings and their norm, the alibi of every sequence, the mask."""
    tokens = embedded(model, "word_embeddings.weight", ids)
    hidden = model.stem.layer_norm(tokens, "word_embeddings_layernorm")
    model.held += [tokens, *alibi_parts(model)]
    model.around = Around(None, None, alibi(model, hidden.itemsize))
    model.around.mask = causal_mask(model, tokens)
    return hidden


def alibi_parts(model: Model) -> list[Tensor]:
    """The slopes of the heads, which the base model holds."""
    return [model.tape.new("1", model.arch.heads, FULL)]


def alibi(model: Model, itemsize: int) -> Tensor:
    """Slopes times positions of one sequence, repeated for the batch, cast to the residual stream's type."""
    tape, heads = model.tape, model.arch.heads
    counted = tape.new("s", 1, LONG)
    single = tape.new("s", heads, FULL)
    del counted
    repeated = tape.new("T", heads, FULL)
    out = ops.cast(repeated, itemsize)
    del single
    return out


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; each half adds the residual stream itself."""
    norm = normed(model, layer, x, "input_layernorm")
    residual = x
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, norm, residual, around)
    norm = normed(model, layer, attended, "post_attention_layernorm")
    residual = attended
    with model.tape.inside("mlp"):
        return mlp(model, layer, norm, residual)


def attention(
    model: Model, layer: Layer, x: Tensor, residual: Tensor, around: Around
) -> tuple[Tensor, Tensor]:
    """Fused projection by heads, scores on top of alibi, output projection, dropout and add."""
    arch = model.arch
    q, k, v = by_parts(layer.linear(x, "self_attention.query_key_value"))
    q, k, v = (folded_heads(model, part) for part in (q, k, v))
    scores = biased_scores(model, around.tables[0], q, k)
    weights = ops.add(scores, around.mask) if around.mask is not None else scores
    probabilities = ops.cast(ops.softmax(weights, FULL), q.itemsize)
    probabilities = ops.dropout(probabilities, rate(model, arch.attention_dropout))
    out = product(model, probabilities, v)
    out = unfolded(model, out)
    out = layer.linear(out, "self_attention.dense")
    return dropout_add(model, out, residual), probabilities


def by_parts(qkv: Tensor) -> list[Tensor]:
    """Queries, keys and values of each head side by side: three selections, whose backward fills the whole each."""
    return [ops.part(qkv, qkv.width // 3) for _ in range(3)]


def folded_heads(model: Model, x: Tensor) -> Tensor:
    """``reshape(batch * heads, …)``: a view of one sequence, a copy of several."""
    return x if model.regime.single else ops.copy(x)


def biased_scores(model: Model, bias: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """``alibi.baddbmm(q, k)``: keeps both factors."""
    k = ops.autocast(k)
    q = ops.autocast(q)
    bias = ops.autocast(bias)
    del bias
    return ops.matmul(q, k, "bss", model.arch.heads)


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
    kept = [tape.save(x)] if x.needs else []
    out = _written(x.detach())
    if not x.needs:
        return out
    rows, width, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        return (_derivative(tape.new(rows, width, size)),)

    return tape.attach(out, (x,), kept, backward)


def _written(x: Tensor) -> Tensor:
    return x.tape.like(x)


def _derivative(x: Tensor) -> Tensor:
    return x


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "ln_f")
