"""GPT-J: rotary positions on interleaved pairs of a part of each head, attention and feed-forward block in parallel."""

from estimator.step import ops
from estimator.step.attention import rotate, sdpa
from estimator.step.families.classic import Around, dropped, normed, plain_mlp, shared
from estimator.step.families.gpt2 import top
from estimator.step.families.rotary import cut
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, Tensor
from estimator.step.written import by_heads, rate, scores_of, unfolded, weighted

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings and their dropout; sines and cosines are looked up in a table, one tensor for both."""
    tokens = embedded(model, "wte.weight", ids)
    model.held.append(tokens)
    position_ids, mask = positions(model), causal_mask(model, tokens)
    hidden = ops.dropout(tokens, rate(model, model.arch.embedding_dropout))
    looked_up = model.tape.new("s", int(model.arch.head_dim * model.arch.rotary_fraction), FULL)
    model.around = Around(position_ids, mask, ops.cast(looked_up, hidden.itemsize))
    return hidden


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block: both halves read the same norm."""
    residual = x
    x = normed(model, layer, x, "ln_1")
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, x, around)
    changed = dropped(model, plain_mlp(model, layer, x, "mlp.fc_in", "mlp.fc_out"))
    return ops.add(ops.add(attended, changed), residual)


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Projections, rotary positions in token order, attention, output projection, dropout."""
    arch = model.arch
    q = layer.linear(x, "attn.q_proj")
    k = layer.linear(x, "attn.k_proj")
    v = by_heads(model, layer.linear(x, "attn.v_proj"))
    width = around.tables[0].width * arch.heads
    k_turned, k_rest = cut(k, width)
    q_turned, q_rest = cut(q, width)
    k_turned = turned(k_turned, around.tables[0])
    q_turned = turned(q_turned, around.tables[0])
    k = ops.concat([k_turned, k_rest])
    q = ops.concat([q_turned, q_rest])
    k, v = layer.cached(k, v)
    if model.regime.attention == "eager":
        out, weights = written_out(model, q, k, v, around.mask)
    else:
        out, weights = sdpa(q, k, v, arch.heads, arch.heads, around.mask, rate(model, arch.attention_dropout)), None
    out = layer.linear(out, "attn.out_proj")
    return dropped(model, out), weights


def turned(x: Tensor, table: Tensor) -> Tensor:
    """Pairs of neighbours turned; the tables' entries are doubled for every call."""
    sin, cos = table.tape.like(table), table.tape.like(table)
    return rotate(x, cos, sin)


def written_out(model: Model, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Attention whose scores are fp32 (but for autocast)."""
    scores = ops.scale(scores_of(model, ops.cast(q, FULL), ops.cast(k, FULL)))
    if mask is not None:
        scores = ops.add(scores, mask)
    scores = ops.cast(ops.softmax(scores), v.itemsize)
    scores = ops.dropout(scores, rate(model, model.arch.attention_dropout))
    return unfolded(model, weighted(model, scores, v)), scores
