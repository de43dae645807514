"""How a decoder layer arranges attention, feed-forward block and norms around the residual stream."""

from collections.abc import Callable
from typing import Any

from estimator.step import ops
from estimator.step.model import Layer, Model
from estimator.step.norms import Norm, rms
from estimator.step.tape import Tensor

Attention = Callable[[Model, Layer, Tensor, Any], tuple[Tensor, Tensor | None]]
"""Gives what attention adds, and scores (or None) that live as long as the layer's own code."""

Mlp = Callable[[Model, Layer, Tensor], Tensor]
Change = Callable[[Model, Tensor], Tensor]


def unchanged(_model: Model, x: Tensor) -> Tensor:
    """What a block hands to the residual stream, as it is."""
    return x


def pre_norm(
    model: Model,
    layer: Layer,
    x: Tensor,
    around: Any,
    attention: Attention,
    mlp: Mlp,
    norm: Norm = rms,
    change: Change = unchanged,
) -> Tensor:
    """Norm, attention, add; norm, feed-forward, add. ``change`` is applied to what each block adds."""
    before, between = (names[1] for names in model.arch.norm_names)
    residual = x
    with model.tape.inside("norm"):
        x = norm(layer, x, before)
    with model.tape.inside("attention"):
        x, _scores = attention(model, layer, model.entered(x), around)
    x = ops.add(residual, change(model, x))
    residual = x
    with model.tape.inside("norm"):
        x = norm(layer, x, between)
    with model.tape.inside("mlp"):
        x = mlp(model, layer, model.entered(x))
    return ops.add(residual, change(model, x))


def post_norm(
    model: Model, layer: Layer, x: Tensor, around: Any, attention: Attention, mlp: Mlp, norm: Norm = rms
) -> Tensor:
    """Attention, norm, add; feed-forward, norm, add (OLMo-2, EXAONE 4)."""
    residual = x
    with model.tape.inside("attention"):
        x, _scores = attention(model, layer, model.entered(x), around)
    with model.tape.inside("norm"):
        x = norm(layer, x, "post_attention_layernorm")
    x = ops.add(residual, x)
    residual = x
    with model.tape.inside("mlp"):
        x = mlp(model, layer, model.entered(x))
    with model.tape.inside("norm"):
        x = norm(layer, x, "post_feedforward_layernorm")
    return ops.add(residual, x)


def sandwich(
    model: Model, layer: Layer, x: Tensor, around: Any, attention: Attention, mlp: Mlp, norm: Norm = rms
) -> Tensor:
    """A norm before and after attention and feed-forward block (Gemma 2, GLM-4)."""
    names = dict(model.arch.norm_names)
    residual = x
    with model.tape.inside("norm"):
        x = norm(layer, x, names["pre_attention"])
    with model.tape.inside("attention"):
        x, _scores = attention(model, layer, model.entered(x), around)
    with model.tape.inside("norm"):
        x = norm(layer, x, names["post_attention"])
    x = ops.add(residual, x)
    residual = x
    with model.tape.inside("norm"):
        x = norm(layer, x, names["pre_mlp"])
    with model.tape.inside("mlp"):
        x = mlp(model, layer, model.entered(x))
    with model.tape.inside("norm"):
        x = norm(layer, x, names["post_mlp"])
    return ops.add(residual, x)


def parallel(
    model: Model, layer: Layer, x: Tensor, around: Any, attention: Attention, mlp: Mlp, norm: Norm = rms
) -> Tensor:
    """One norm in front of attention and feed-forward block, which add to the residual stream together."""
    with model.tape.inside("norm"):
        h = norm(layer, x, model.arch.norm_names[0][1])
    with model.tape.inside("attention"):
        attended, _scores = attention(model, layer, model.entered(h), around)
    with model.tape.inside("mlp"):
        changed = mlp(model, layer, model.entered(h))
    return ops.add(ops.add(x, attended), changed)
