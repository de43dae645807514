"""MPT: alibi added to written-out scores in fp32, no biases, dropout-and-add."""

from estimator.step import ops
from estimator.step.families.classic import Around, normed, shared
from estimator.step.masks import written_out_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import BOOL, FULL, Tensor
from estimator.step.written import by_token, rate, scores_of, unfolded, weighted

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings, the alibi of the longest length, a boolean mask."""
    tokens = embedded(model, "wte.weight", ids)
    alibi = model.tape.new("1", model.arch.heads * model.arch.max_positions, FULL)
    mask = written_out_mask(model, tokens)
    if mask is not None and mask.itemsize != BOOL:
        mask = model.tape.like(mask, BOOL)
    model.held.append(tokens)
    model.around = Around(None, mask, alibi)
    return tokens


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; its weights live until the next block has returned."""
    norm = normed(model, layer, x, "norm_1")
    residual = x
    with model.tape.inside("attention"):
        attended, weights = attention(model, layer, norm, around)
    x = ops.add(ops.dropout(attended, rate(model, model.arch.dropout)), residual)
    norm = normed(model, layer, x, "norm_2")
    residual = x
    with model.tape.inside("mlp"):
        out = mlp(model, layer, norm, residual)
    model.held[1:] = [weights]
    return out


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor]:
    """Fused projection, scores with alibi and mask in fp32, output projection."""
    mixed = layer.linear(x, "attn.Wqkv")
    q, k, v = ops.split(mixed, [model.arch.hidden] * 3)
    q, v = by_token(q), by_token(v)
    k, v = layer.cached(k, v)
    scores = ops.scale(scores_of(model, q, k))
    scores = biased(scores, around.tables[0])
    scores = masked(scores, around.mask)
    weights = ops.cast(ops.softmax(scores), v.itemsize)
    weights = ops.dropout(weights, rate(model, model.arch.attention_dropout))
    context = weighted(model, weights, v)
    context = unfolded(model, context)
    out = layer.linear(context, "attn.out_proj")
    del mixed, scores
    return out, weights


def biased(scores: Tensor, alibi: Tensor) -> Tensor:
    """``scores + alibi``: fp32, as the alibi is."""
    out = scores.tape.like(scores, alibi.itemsize)
    return scores.tape.attach(out, (scores,), (), lambda g: (g,)) if scores.needs else out


def masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """``scores.masked_fill(mask, lowest)``: keeps the mask."""
    tape = scores.tape
    kept = [tape.save(mask)] if scores.needs else []
    out = tape.like(scores)
    if not scores.needs:
        return out
    rows, width, size = ops.shape_of(scores)
    return tape.attach(out, (scores,), kept, lambda g: (tape.new(rows, width, size),))


def mlp(model: Model, layer: Layer, x: Tensor, residual: Tensor) -> Tensor:
    """Up, GELU, down, dropout and add."""
    x = ops.gelu(layer.linear(x, "ffn.up_proj"))
    changed = layer.linear(x, "ffn.down_proj")
    return ops.add(ops.dropout(changed, rate(model, model.arch.dropout)), residual)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "norm_f")
