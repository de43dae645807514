"""T5, mT5, UMT5: an encoder, and a decoder that reads it; relative positions are biases of the scores.

transformers 5.24, models/t5. SDPA is handed the biases as a mask of its own in every layer, with the causal order
written into the decoder's (integrations/sdpa_attention.py, ``create_position_bias_mask``).
"""

from estimator.step import ops
from estimator.step.activations import gelu_tanh_written_out
from estimator.step.attention import efficient
from estimator.step.families.classic import dropped
from estimator.step.families.encoder import Heads
from estimator.step.families.seq2seq import (
    Pairs,
    Stacks,
    decoding,
    kernel_mask,
    keys_and_values,
    pairs_of,
    shared,
    variant,
    written_out,
)
from estimator.step.losses import cross_entropy, logits_of
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import BOOL, FULL, LONG, Leaf, Tensor
from estimator.step.written import by_heads, keys_by_heads

__all__ = ["encoded", "layer", "loss", "shared", "stem", "target", "top", "variant"]

SELF, CROSS = "layer.0.SelfAttention", "layer.1.EncDecAttention"
UNSCALED = ("mt5",)
"""Types that never scale what their head reads."""


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings and their dropout."""
    tokens = embedded(model, "shared.weight", ids)
    model.held = [tokens]
    return dropped(model, tokens)


def encoded(model: Model, hidden: Tensor, around: Stacks) -> None:
    """The encoder's end: what it made is there for the decoder."""
    source = dropped(model, norm(model.stem, hidden, "final_layer_norm"))
    del hidden
    model.held.clear()
    model.source = source
    around.turn(source)


def target(model: Model, ids: Tensor, around: Stacks) -> Tensor:
    """The decoder's beginning."""
    return decoding(model, stem(model, ids), around)


def layer(model: Model, layer: Layer, x: Tensor, around: Stacks) -> Tensor:
    """Self-attention, in the decoder attention to what the encoder made, feed-forward."""
    crosses = layer.has(f"{CROSS}.q.weight")
    x, *made = attended(model, layer, x, around, SELF, "layer.0.layer_norm")
    if crosses:
        x, *also = attended(model, layer, x, around, CROSS, "layer.1.layer_norm")
        made += also
    return fed(model, layer, x, "layer.2" if crosses else "layer.1")


def fed(model: Model, layer: Layer, x: Tensor, name: str) -> Tensor:
    """The feed-forward block."""
    with model.tape.inside("norm"):
        h = norm(layer, x, f"{name}.layer_norm")
    with model.tape.inside("mlp"):
        h = dense(model, layer, h, f"{name}.DenseReluDense")
        changed = dropped(model, h)
    return ops.add(x, changed)


def dense(model: Model, layer: Layer, x: Tensor, name: str) -> Tensor:
    """Plain with ReLU, or gated with the written-out GELU."""
    if layer.has(f"{name}.wi_0.weight"):
        gate = gelu_tanh_written_out(layer.linear(x, f"{name}.wi_0"))
        straight = layer.linear(x, f"{name}.wi_1")
        x = ops.mul(gate, straight)
    else:
        x = layer.linear(x, f"{name}.wi")
        x = ops.relu(x)
    x = dropped(model, x)
    x = ops.cast(x, layer.weight(f"{name}.wo.weight").itemsize)
    return layer.linear(x, f"{name}.wo")


def norm(layer: Layer, x: Tensor, name: str) -> Tensor:
    """T5's RMS norm: fp32 for the variance and the product, cast to the weight's type before the scale."""
    weight = layer.weight(f"{name}.weight")
    variance = ops.mean(ops.power(ops.cast(x, FULL)))
    x = ops.mul(x, ops.rsqrt(ops.shift(variance)))
    if weight.itemsize != FULL:
        x = ops.cast(x, weight.itemsize)
    return ops.mul(x, weight)


def attended(
    model: Model, layer: Layer, x: Tensor, around: Stacks, name: str, before: str
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Norm, attention, dropout, residual stream; beside it the biases and the scores, which the layer holds."""
    with model.tape.inside("norm"):
        h = norm(layer, x, before)
    with model.tape.inside("attention"):
        out, bias, weights = attention(model, layer, h, around, name)
        changed = dropped(model, out)
    return ops.add(x, changed), bias, weights


def attention(
    model: Model, layer: Layer, x: Tensor, around: Stacks, name: str
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Projections, biases, attention, output projection; what is handed on of the biases, and the scores."""
    arch, pairs = model.arch, pairs_of(model, x, name == CROSS)
    source = around.source if pairs.crosses and around.source is not None else x
    q = by_heads(model, layer.linear(x, f"{name}.q"))
    k, v = keys_and_values(model, layer, source, (f"{name}.k", f"{name}.v"), pairs)
    k, v = keys_by_heads(model, k), by_heads(model, v)
    bias = around.biases.get(name)
    if bias is None:
        bias = made_bias(model, layer, around, pairs, name, q.itemsize)
        if not model.tape.replaying and arch.model_type != "umt5":
            (around.whole or around).biases[name] = bias
    if model.regime.attention == "eager":
        out, weights = written_out(
            model, q, k, v, bias, around.mask if pairs.every == "T" and not pairs.crosses else None, pairs, arch.dropout
        )
        return layer.linear(out, f"{name}.o"), shared_bias(model, bias), weights
    mask = kernel_mask(model, bias, pairs, around.padding.get(pairs.crosses))
    q, k, v = (ops.autocast(one) for one in (q, k, v))
    out = efficient(q, k, v, arch.heads, mask.mask, v.width // arch.heads, mask.by_row, mask.padded)
    del mask
    return layer.linear(out, f"{name}.o"), shared_bias(model, bias), None


def shared_bias(model: Model, bias: Tensor) -> Tensor | None:
    """T5 hands biases on from layer to layer; UMT5's are its attention's own."""
    return None if model.arch.model_type == "umt5" else bias


def made_bias(model: Model, layer: Layer, around: Stacks, pairs: Pairs, name: str, itemsize: int) -> Tensor:
    """Looked up by the distance's bucket; zeros where attention goes to the encoder, which checkpoints make a leaf."""
    tape, heads, rows = model.tape, model.arch.heads, pairs.of_one()
    table = f"{name}.relative_attention_bias.weight"
    if layer.has(table):
        return ops.embedding(layer.weight(table), rows, heads, bucketed(model, pairs))
    if model.regime.attention == "eager":
        zeros = tape.new(rows, heads, itemsize)
    else:  # what is padded for the kernel lives only as long as it is handed on
        zeros = tape.new(pairs.of_one(8, "whole"), heads, itemsize)
        (around.whole or around).biases[f"{name} odd"] = tape.new(pairs.of_one(8, "odd"), heads, itemsize)
    if not (model.regime.training and model.regime.checkpointing != "none") or model.arch.model_type == "umt5":
        return zeros
    leaf = Leaf(tape, heads, itemsize, True)
    leaf.rows, leaf.storage, leaf.is_parameter = rows, zeros.storage, False
    tape.pin(leaf)  # the graph's node for it lives as long as the loss, and its gradient with it
    return leaf


def bucketed(model: Model, pairs: Pairs) -> Tensor:
    """The bucket of each distance: exact near by, by the logarithm farther off, behind and ahead apart in encoders."""
    tape, rows = model.tape, pairs.of_one()
    sides = [tape.new(pairs.queries, 1, LONG), tape.new(pairs.keys, 1, LONG)]
    distance = tape.new(rows, 1, LONG)
    ahead, size = _ahead(distance) if pairs.every == "S" else (None, _behind(distance))
    small = tape.new(rows, 1, BOOL)
    far = _far(size)
    chosen = tape.like(distance)
    buckets = ahead if ahead is not None else tape.like(chosen)
    del chosen, size, small, far, sides, distance, ahead
    return buckets


def _ahead(distance: Tensor) -> tuple[Tensor, Tensor]:
    """The first bucket of each direction, and how far it is."""
    tape = distance.tape
    flag = tape.like(distance, BOOL)
    number = tape.like(distance)
    del flag
    product = tape.like(number)
    del number
    first = tape.like(product)
    del product
    return first, tape.like(distance)


def _behind(distance: Tensor) -> Tensor:
    zeros = distance.tape.like(distance)
    lower = distance.tape.like(distance)
    del zeros
    return distance.tape.like(lower)


def _far(size: Tensor) -> Tensor:
    """``min(exact + (log(size / exact) / c * rest).long(), last)``."""
    tape = size.tape
    scaled = tape.like(size, FULL)
    for _ in range(4):
        scaled = tape.like(scaled)
    number = tape.like(size)
    del scaled
    shifted = tape.like(number)
    del number
    last = tape.like(shifted)
    lower = tape.like(shifted)
    del last
    return lower


def top(model: Model, x: Tensor) -> Tensor:
    """The decoder's final norm, and the scale in front of a head that is the embedding."""
    x = dropped(model, norm(model.top, x, "final_layer_norm"))
    if model.regime.training:
        model.given.append(x)
    model.held.clear()
    model.around.biases.clear()
    model.around.source = None
    model.around = None
    return ops.scale(x) if model.arch.tied and model.arch.model_type not in UNSCALED else x


def loss(model: Model, hidden: Tensor, labels: Tensor) -> Heads:
    """Cross-entropy of the logits as they are, nothing shifted."""
    logits = logits_of(model, hidden)
    result = cross_entropy(logits, labels)
    model.given.clear()
    return result, logits
