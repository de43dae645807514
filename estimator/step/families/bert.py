"""BERT, RoBERTa, XLM-RoBERTa: learned positions and token types, norms behind the blocks, dropout in both."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.families.classic import Around, dropped, normed, shared
from estimator.step.families.encoder import Heads, both_ways, masked_lm
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import BOOL, LONG, Tensor
from estimator.step.written import attend, by_heads, keys_by_heads

__all__ = ["layer", "loss", "shared", "stem", "top"]

INT = 4


def stem(model: Model, ids: Tensor) -> Tensor:
    """Words, token types and positions, normed and dropped; nothing of them outlives the stem."""
    counted = model.arch.model_type != "bert"
    rows = ids.rows if counted or model.regime.single else "s"
    places = counted_from_tokens(model) if counted else None
    types = model.tape.new(ids.rows if counted else "s", 1, LONG)
    tokens = embedded(model, "word_embeddings.weight", ids)
    kinds = ops.embedding(model.stem.weight("token_type_embeddings.weight"), ids.rows, model.arch.hidden, types)
    out = ops.add(tokens, kinds)
    where = places if places is not None else types
    position = ops.embedding(model.stem.weight("position_embeddings.weight"), rows, model.arch.hidden, where)
    out = ops.add(out, position)
    out = model.stem.layer_norm(out, "LayerNorm")
    model.around = Around(None, both_ways(model))
    return dropped(model, out)


def counted_from_tokens(model: Model) -> Tensor:
    """RoBERTa's positions: the running count of tokens that are not padding."""
    tape = model.tape
    unpadded = tape.new("T", 1, BOOL)
    unpadded = tape.like(unpadded, INT)
    running = tape.new("T", 1, LONG)
    running = tape.like(running, INT)
    counted = tape.like(unpadded)
    counted = tape.like(running)
    long = tape.like(counted, LONG)
    return tape.like(long)


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One layer."""
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, x, around)
    with model.tape.inside("mlp"):
        between = layer.linear(attended, "intermediate.dense")
        between = activation(model.arch.activation)(between)
    return added(model, layer, between, attended, "output")


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Projections, attention, and what is added and normed behind it."""
    out, weights = heads(model, layer, x, around)
    return added(model, layer, out, x, "attention.output"), weights


def heads(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Queries, keys, values, attention."""
    q = by_heads(model, layer.linear(x, "attention.self.query"))
    k = keys_by_heads(model, layer.linear(x, "attention.self.key"))
    v = by_heads(model, layer.linear(x, "attention.self.value"))
    return attend(model, q, k, v, around.mask, softmax="plain")


def added(model: Model, layer: Layer, x: Tensor, residual: Tensor, name: str) -> Tensor:
    """Linear, dropout, residual stream, norm."""
    x = layer.linear(x, f"{name}.dense")
    x = dropped(model, x)
    return normed(model, layer, ops.add(x, residual), f"{name}.LayerNorm")


def top(model: Model, x: Tensor) -> Tensor:
    """Nothing follows the last layer."""
    return x


def loss(model: Model, hidden: Tensor, labels: Tensor) -> Heads:
    """Masked language modelling: of logits as they are, without a cast to fp32."""
    return masked_lm(model, hidden, labels, transformed, "decoder")


def transformed(model: Model, x: Tensor) -> Tensor:
    """Linear, activation, norm in front of the vocabulary."""
    x = model.top.linear(x, "dense")
    x = activation(model.arch.activation)(x)
    return model.top.layer_norm(x, "LayerNorm" if model.top.has("LayerNorm.weight") else "layer_norm")
