"""BART, mBART, M2M-100 and NLLB: an encoder and a decoder with layer norms, positions learned or sinusoidal.

transformers 5.24, models/bart, mbart, m2m_100: BART norms behind its blocks, the others in front.
"""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import sdpa
from estimator.step.families.classic import dropped, normed
from estimator.step.families.encoder import Heads
from estimator.step.families.seq2seq import (
    Stacks,
    decoding,
    keys_and_values,
    pairs_of,
    shared,
    variant,
    written_out,
)
from estimator.step.losses import cross_entropy, logits_of
from estimator.step.masks import tokens_so_far
from estimator.step.model import Layer, Model, wants_gradient
from estimator.step.tape import BOOL, FULL, LONG, Rows, Tensor
from estimator.step.written import by_heads, keys_by_heads, rate

__all__ = ["encoded", "layer", "loss", "shared", "stem", "target", "top", "variant"]

INT = 4


def stem(model: Model, ids: Tensor) -> Tensor:
    """Tokens, scaled, and positions."""
    return begun(model, model.stem, ids)


def begun(model: Model, stack: Layer, ids: Tensor) -> Tensor:
    """What goes into a stack: its positions (and norm, where it has one) lie in ``stack``."""
    arch, tape = model.arch, model.tape
    tokens = ops.scale(model.look_up(model.stem.weight("shared.weight"), ids, arch.hidden))
    if model.asks_for_input_gradients and not tokens.needs:
        tokens = wants_gradient(tokens)
    model.held = [tokens]
    if stack is model.top:
        model.held.append(tape.new(tokens_so_far(model), 1, FULL))
    if stack.has("embed_positions.weight"):
        rows: Rows = ids.rows if ids.rows == "S" else "s"
        first = tape.new("n" if rows == "S" else "s", 1, LONG)
        shifted = tape.new(rows, 1, LONG)
        model.held.append(first)
        places = ops.embedding(stack.weight("embed_positions.weight"), rows, arch.hidden, shifted)
        del shifted
    else:
        counted = _counted(ids)
        places = tape.new(ids.rows, arch.hidden, tokens.itemsize)
        del counted
    model.held.append(places)
    hidden = ops.add(tokens, places)
    if stack.has("layernorm_embedding.weight"):
        hidden = stack.layer_norm(hidden, "layernorm_embedding")
    return dropped(model, hidden)


def _counted(ids: Tensor) -> Tensor:
    """Positions counted from the tokens that are not padding."""
    tape = ids.tape
    unpadded = tape.like(ids, BOOL)
    unpadded = tape.like(ids, INT)
    running = tape.like(ids, LONG)
    for _ in range(3):
        running = tape.like(ids, INT)
    del unpadded
    places = tape.like(ids)
    del running
    return tape.like(places)


def encoded(model: Model, hidden: Tensor, around: Stacks) -> None:
    """The encoder's end."""
    source = ended(model, model.stem, hidden)
    del hidden
    model.held.clear()
    model.source = source
    around.turn(source)


def ended(model: Model, stack: Layer, x: Tensor) -> Tensor:
    """The norm behind a stack whose layers have theirs in front."""
    return stack.layer_norm(x, "layer_norm") if stack.has("layer_norm.weight") else x


def target(model: Model, ids: Tensor, around: Stacks) -> Tensor:
    """The decoder's beginning."""
    return decoding(model, begun(model, model.top, ids), around)


def layer(model: Model, layer: Layer, x: Tensor, around: Stacks) -> Tensor:
    """Self-attention, in the decoder attention to what the encoder made, feed-forward."""
    x, weights = attended(model, layer, x, around, "self_attn")
    if layer.has("encoder_attn.q_proj.weight"):
        x, weights = attended(model, layer, x, around, "encoder_attn")
    del weights
    before = model.arch.norm_first
    residual = x
    if before:
        x = normed(model, layer, x, "final_layer_norm")
    with model.tape.inside("mlp"):
        x = activation(model.arch.activation)(layer.linear(x, "fc1"))
        x = layer.linear(x, "fc2")
        x = dropped(model, x)
    x = ops.add(residual, x)
    return x if before else normed(model, layer, x, "final_layer_norm")


def attended(model: Model, layer: Layer, x: Tensor, around: Stacks, name: str) -> tuple[Tensor, Tensor | None]:
    """One attention around the residual stream, and the scores where they are written out."""
    before = model.arch.norm_first
    residual = x
    if before:
        x = normed(model, layer, x, f"{name}_layer_norm")
    with model.tape.inside("attention"):
        x, weights = attention(model, layer, x, around, name)
        x = dropped(model, x)
    x = ops.add(residual, x)
    return (x if before else normed(model, layer, x, f"{name}_layer_norm")), weights


def attention(model: Model, layer: Layer, x: Tensor, around: Stacks, name: str) -> tuple[Tensor, Tensor | None]:
    """Projections, attention, output projection."""
    arch, pairs = model.arch, pairs_of(model, x, name == "encoder_attn")
    source = around.source if pairs.crosses and around.source is not None else x
    q = by_heads(model, layer.linear(x, f"{name}.q_proj"))
    k, v = keys_and_values(model, layer, source, (f"{name}.k_proj", f"{name}.v_proj"), pairs)
    k, v = keys_by_heads(model, k), by_heads(model, v)
    if model.regime.attention == "eager":
        mask = around.mask if pairs.every == "T" and not pairs.crosses else None
        out, weights = written_out(model, q, k, v, None, mask, pairs, arch.attention_dropout)
        return layer.linear(out, f"{name}.out_proj"), weights
    told = around.padding.get(pairs.crosses)
    out = sdpa(q, k, v, arch.heads, arch.heads, told, rate(model, arch.attention_dropout))
    return layer.linear(out, f"{name}.out_proj"), None


def top(model: Model, x: Tensor) -> Tensor:
    """The decoder's end."""
    x = ended(model, model.top, x)
    model.held.clear()
    model.around.source = None
    model.around = None
    return x


def loss(model: Model, hidden: Tensor, labels: Tensor) -> Heads:
    """Cross-entropy of the logits as they are, nothing shifted; some add a bias that is never trained."""
    logits = logits_of(model, hidden)
    if model.arch.model_type != "m2m_100":
        logits = ops.shift(logits)
    result = cross_entropy(logits, labels)
    model.given.clear()
    return result, logits
