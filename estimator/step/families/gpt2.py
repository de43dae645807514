"""GPT-2: learned positions, pre-norm, fused queries, keys and values, dropout everywhere, a GELU written out."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import sdpa
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_heads, rate


class Shared:
    """What all layers read: position ids and the mask."""

    def __init__(self, ids: Tensor | None, mask: Tensor | None) -> None:
        self.ids, self.mask = ids, mask


def stem(model: Model, ids: Tensor) -> Tensor:
    """Tokens and positions; both lookups stay alive as long as the base model runs, so does the mask."""
    tokens = embedded(model, "wte.weight", ids)
    position_ids = positions(model)
    rows = "T" if model.regime.single else "s"
    places = ops.embedding(model.stem.weight("wpe.weight"), rows, model.arch.hidden, position_ids)
    hidden = ops.add(tokens, places)
    model.held += [tokens, places, position_ids]
    model.mask = causal_mask(model, tokens)
    return ops.dropout(hidden, rate(model, model.arch.embedding_dropout))


def shared(model: Model, hidden: Tensor) -> Shared:
    """The mask, made between the embeddings and their dropout."""
    mask, model.mask = model.mask, None
    return Shared(None, mask)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One block."""
    residual = x
    with model.tape.inside("norm"):
        x = layer.layer_norm(x, "ln_1")
    with model.tape.inside("attention"):
        attended = attention(model, layer, x, around)
    x = ops.add(attended, residual)
    residual = x
    with model.tape.inside("norm"):
        x = layer.layer_norm(x, "ln_2")
    with model.tape.inside("mlp"):
        changed = mlp(model, layer, x)
    return ops.add(residual, changed)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """Fused projection, attention, output projection, dropout."""
    arch = model.arch
    q, k, v = ops.split(layer.linear(x, "attn.c_attn"), [arch.hidden] * 3)
    k, v = by_heads(model, k), by_heads(model, v)
    q = by_heads(model, q)
    if model.regime.attention == "eager":
        out = attend(model, q, k, v, around.mask, full_softmax=False)
    else:
        out = sdpa(q, k, v, arch.heads, arch.heads, around.mask, rate(model, arch.attention_dropout))
    out = layer.linear(out, "attn.c_proj")
    return ops.dropout(out, rate(model, arch.dropout))


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Up, activation, down, dropout."""
    x = layer.linear(x, "mlp.c_fc")
    x = activation(model.arch.activation)(x)
    x = layer.linear(x, "mlp.c_proj")
    return ops.dropout(x, rate(model, model.arch.dropout))


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "ln_f")
