"""GPT-NeoX (Pythia): fused projection, partial rotary positions, attention and feed-forward block in parallel."""

from estimator.step import ops
from estimator.step.attention import rotate
from estimator.step.families.classic import Around, dropped, normed, plain_mlp, shared
from estimator.step.families.llama import rotary
from estimator.step.families.rotary import cut
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_token

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings and their dropout; position ids and the mask are made between the two."""
    tokens = embedded(model, "embed_in.weight", ids)
    model.held.append(tokens)
    position_ids, mask = positions(model), causal_mask(model, tokens)
    hidden = dropped(model, tokens)
    cos, sin = rotary(model, hidden.itemsize)
    model.around = Around(position_ids, mask, cos, sin)
    return hidden


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; in parallel, both halves start from the same input."""
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, normed(model, layer, x, "input_layernorm"), around)
        attended = dropped(model, attended)
    if model.arch.parallel_residual:
        changed = changed_by_mlp(model, layer, x)
        return ops.add(ops.add(changed, attended), x)
    attended = ops.add(attended, x)
    changed = changed_by_mlp(model, layer, attended)
    return ops.add(changed, attended)


def changed_by_mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Norm, feed-forward block, dropout."""
    h = normed(model, layer, x, "post_attention_layernorm")
    return dropped(model, plain_mlp(model, layer, h, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"))


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Fused projection by heads, partial rotary positions, attention, output projection."""
    arch = model.arch
    qkv = by_token(layer.linear(x, "attention.query_key_value"))
    q, k, v = ops.split(qkv, [arch.hidden] * 3)
    q, k = turned(model, q, k, *around.tables)
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask, by_head=True)
    return layer.linear(out, "attention.dense"), weights


def turned(model: Model, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotary positions on a part of each head; what was turned goes as soon as it is joined to the rest."""
    width = cos.width * model.arch.heads
    (q_turned, q_rest), (k_turned, k_rest) = cut(q, width), cut(k, width)
    q_turned, k_turned = rotate(q_turned, cos, sin), rotate(k_turned, cos, sin)
    q_turned = ops.concat([q_turned, q_rest])
    k_turned = ops.concat([k_turned, k_rest])
    return q_turned, k_turned


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "final_layer_norm")
