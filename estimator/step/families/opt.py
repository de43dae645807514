"""OPT: learned positions counted from the mask, scaled queries, ReLU; norms before the blocks, or after (350m)."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.families.classic import Around, dropped, normed, shared
from estimator.step.masks import causal_mask, tokens_so_far
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import attend, by_heads, keys_by_heads

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Tokens (projected to the residual stream's width) plus positions."""
    tokens = embedded(model, "embed_tokens.weight", ids)
    ones, position_ids = counted_positions(model)
    mask = causal_mask(model, tokens)
    shifted = ops.shift(position_ids)
    places = ops.embedding(model.stem.weight("embed_positions.weight"), ids.rows, model.arch.hidden, shifted)
    del shifted
    if model.stem.has("project_in.weight"):
        tokens = model.stem.linear(tokens, "project_in")
    model.held += [tokens, places, ones]
    model.around = Around(position_ids, mask)
    return ops.add(tokens, places)


def counted_positions(model: Model) -> tuple[Tensor, Tensor]:
    """A mask of ones and its running sum less one; with a mask at hand, that is used."""
    tape = model.tape
    ones = tape.new(tokens_so_far(model), 1, FULL)
    summed = tape.like(ones)
    product = tape.like(summed)
    less = tape.like(product)
    del product
    ids = tape.new(ones.rows, 1, LONG)
    del less
    return ones, ids


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One layer; with norms behind the blocks, nothing is normed before them."""
    before = model.arch.norm_first
    residual = x
    if before:
        x = normed(model, layer, x, "self_attn_layer_norm")
    with model.tape.inside("attention"):
        x, _weights = attention(model, layer, x, around)
        x = dropped(model, x)
    x = ops.add(residual, x)
    if not before:
        x = normed(model, layer, x, "self_attn_layer_norm")
    residual = x
    if before:
        x = normed(model, layer, x, "final_layer_norm")
    with model.tape.inside("mlp"):
        x = layer.linear(x, "fc1")
        x = activation(model.arch.activation)(x)
        x = layer.linear(x, "fc2")
        x = dropped(model, x)
    x = ops.add(residual, x)
    return x if before else normed(model, layer, x, "final_layer_norm")


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Queries scaled, keys, values; attention without a scale of its own; output projection."""
    q = by_heads(model, ops.scale(layer.linear(x, "self_attn.q_proj")))
    k = keys_by_heads(model, layer.linear(x, "self_attn.k_proj"))
    v = by_heads(model, layer.linear(x, "self_attn.v_proj"))
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask)
    return layer.linear(out, "self_attn.out_proj"), weights


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm and the projection to the embedding's width, where the model has them."""
    if model.top.has("final_layer_norm.weight"):
        x = model.top.layer_norm(x, "final_layer_norm")
    if model.top.has("project_out.weight"):
        x = model.top.linear(x, "project_out")
    return x
