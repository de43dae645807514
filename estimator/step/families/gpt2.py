"""GPT-2: learned positions, pre-norm, fused queries, keys and values, dropout everywhere, a GELU written out."""

from collections.abc import Callable

from estimator.step import ops
from estimator.step.families.classic import Around, dropped, plain_mlp, shared
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_heads, rate

Attention = Callable[[Model, Layer, Tensor, Around], tuple[Tensor, Tensor | None]]

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Tokens and positions; both lookups stay alive as long as the base model runs, so does the mask."""
    tokens = embedded(model, "wte.weight", ids)
    position_ids = positions(model)
    rows = "T" if model.tape.single else "s"
    places = ops.embedding(model.stem.weight("wpe.weight"), rows, model.arch.hidden, position_ids)
    hidden = ops.add(tokens, places)
    model.held += [tokens, places]
    model.around = Around(position_ids, causal_mask(model, tokens))
    return ops.dropout(hidden, rate(model, model.arch.embedding_dropout))


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block."""
    return block(model, layer, x, around, attention)


def block(model: Model, layer: Layer, x: Tensor, around: Around, attention: Attention) -> Tensor:
    """Norm, attention, add; norm, feed-forward, add."""
    residual = x
    with model.tape.inside("norm"):
        x = layer.layer_norm(x, "ln_1")
    with model.tape.inside("attention"):
        attended, _weights = attention(model, layer, x, around)
    x = ops.add(attended, residual)
    residual = x
    with model.tape.inside("norm"):
        x = layer.layer_norm(x, "ln_2")
    changed = dropped(model, plain_mlp(model, layer, x, "mlp.c_fc", "mlp.c_proj"))
    return ops.add(residual, changed)


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Fused projection, attention, output projection, dropout."""
    arch = model.arch
    q, k, v = ops.split(layer.linear(x, "attn.c_attn"), [arch.hidden] * 3)
    v = by_heads(model, v)
    q = by_heads(model, q)
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask, softmax="cast")
    out = layer.linear(out, "attn.c_proj")
    return dropped(model, out), weights


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "ln_f")
