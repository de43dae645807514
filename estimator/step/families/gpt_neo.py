"""GPT-Neo: GPT-2 with separate projections and attention that is always written out, its scores in fp32."""

from estimator.step import ops
from estimator.step.families.classic import Around, dropped, normed, plain_mlp, shared
from estimator.step.families.gpt2 import top
from estimator.step.masks import positions, written_out_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, Tensor
from estimator.step.written import by_token, rate, scores_of, unfolded, weighted

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Tokens and positions, and the mask between them."""
    tokens = embedded(model, "wte.weight", ids)
    position_ids = positions(model)
    mask = written_out_mask(model, tokens)
    rows = "T" if model.tape.single else "s"
    places = ops.embedding(model.stem.weight("wpe.weight"), rows, model.arch.hidden, position_ids)
    model.held += [tokens, places, position_ids]
    model.around = Around(None, mask)
    hidden = ops.add(tokens, places)
    return ops.dropout(hidden, rate(model, model.arch.embedding_dropout))


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; its weights live until the next block has returned."""
    residual = x
    x = normed(model, layer, x, "ln_1")
    with model.tape.inside("attention"):
        attended, weights = attention(model, layer, x, around)
    x = ops.add(attended, residual)
    residual = x
    x = normed(model, layer, x, "ln_2")
    changed = dropped(model, plain_mlp(model, layer, x, "mlp.c_fc", "mlp.c_proj"))
    out = ops.add(residual, changed)
    model.held[3:] = [weights]
    return out


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor]:
    """Projections, attention, output projection, dropout."""
    q = layer.linear(x, "attn.attention.q_proj")
    k = keys_copied(model, layer.linear(x, "attn.attention.k_proj"))
    v = layer.linear(x, "attn.attention.v_proj")
    q, v = by_token(q), by_token(v)
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask)
    out = unfolded(model, out)
    out = layer.linear(out, "attn.attention.out_proj")
    return dropped(model, out), weights


def keys_copied(model: Model, x: Tensor) -> Tensor:
    """Keys, whose gradient comes back transposed; several sequences' is copied for the linear."""
    return x if model.regime.single else by_token(x)


def attend(model: Model, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores of fp32 queries and keys, the class's own causal mask, the mask handed in, softmax, dropout."""
    q = ops.cast(q, FULL)
    k = ops.cast(k, FULL)
    scores = scores_of(model, q, k)
    scores = ops.scale(scores)
    if mask is not None:
        scores = ops.add(scores, mask)
    scores = ops.softmax(scores)
    scores = ops.cast(scores, v.itemsize)
    scores = ops.dropout(scores, rate(model, model.arch.attention_dropout))
    return weighted(model, scores, v), scores
