"""Phi-1, 1.5 and 2: one norm, attention and feed-forward block in parallel, partial rotary positions, biases."""

from estimator.step import ops
from estimator.step.attention import rotate
from estimator.step.families.classic import Around, dropped, normed, plain_mlp, shared
from estimator.step.families.llama import rotary
from estimator.step.families.rotary import cut
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_heads, by_token, rate

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings and their dropout."""
    tokens = embedded(model, "embed_tokens.weight", ids)
    position_ids, mask = positions(model), causal_mask(model, tokens)
    tokens = ops.dropout(tokens, rate(model, model.arch.embedding_dropout))
    model.held.append(tokens)
    model.around = Around(position_ids, mask, *rotary(model, tokens.itemsize))
    return tokens


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One layer: both blocks read the same norm."""
    residual = x
    x = normed(model, layer, x, "input_layernorm")
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, x, around)
        attended = dropped(model, attended)
    changed = dropped(model, plain_mlp(model, layer, x, "mlp.fc1", "mlp.fc2"))
    return ops.add(ops.add(attended, changed), residual)


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Projections, partial rotary positions, attention, output projection."""
    arch = model.arch
    q = by_token(layer.linear(x, "self_attn.q_proj"))
    k = by_token(layer.linear(x, "self_attn.k_proj"))
    v = by_heads(model, layer.linear(x, "self_attn.v_proj"))
    cos, sin = around.tables
    q_turned, q_rest = cut(q, cos.width * arch.heads)
    k_turned, k_rest = cut(k, cos.width * arch.kv_heads)
    q_turned, k_turned = rotate(q_turned, cos, sin), rotate(k_turned, cos, sin)
    q, k = ops.concat([q_turned, q_rest]), ops.concat([k_turned, k_rest])
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask, by_head=True)
    return layer.linear(out, "self_attn.dense"), weights


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "final_layernorm")
