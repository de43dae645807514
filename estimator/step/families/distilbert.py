"""DistilBERT: BERT without token types and pooler."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.families.bert import top
from estimator.step.families.classic import Around, dropped, normed, plain_mlp, shared
from estimator.step.families.encoder import Heads, both_ways, masked_lm
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_heads, keys_by_heads

__all__ = ["layer", "loss", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Words and positions, normed and dropped; positions are counted once, for all lengths."""
    tokens = embedded(model, "word_embeddings.weight", ids)
    rows = ids.rows if model.regime.single else "s"
    counted = Tensor(model.tape, None, "s", 1, 8)
    places = ops.embedding(model.stem.weight("position_embeddings.weight"), rows, model.arch.hidden, counted)
    out = ops.add(tokens, places)
    out = model.stem.layer_norm(out, "LayerNorm")
    model.around = Around(None, both_ways(model))
    return dropped(model, out)


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block."""
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, x, around)
    attended = normed(model, layer, ops.add(attended, x), "sa_layer_norm")
    changed = dropped(model, plain_mlp(model, layer, attended, "ffn.lin1", "ffn.lin2"))
    return normed(model, layer, ops.add(changed, attended), "output_layer_norm")


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Projections, attention, output projection."""
    q = by_heads(model, layer.linear(x, "attention.q_lin"))
    k = keys_by_heads(model, layer.linear(x, "attention.k_lin"))
    v = by_heads(model, layer.linear(x, "attention.v_lin"))
    out, weights = attend(model, q, k, v, around.mask, softmax="plain")
    return layer.linear(out, "attention.out_lin"), weights


def loss(model: Model, hidden: Tensor, labels: Tensor) -> Heads:
    """Masked language modelling: of logits as they are."""
    return masked_lm(model, hidden, labels, transformed, "vocab_projector")


def transformed(model: Model, x: Tensor) -> Tensor:
    """Linear, activation, norm in front of the vocabulary."""
    x = model.top.linear(x, "vocab_transform")
    x = activation(model.arch.activation)(x)
    return model.top.layer_norm(x, "vocab_layer_norm")
