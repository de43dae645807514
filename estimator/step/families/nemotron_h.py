"""Nemotron-H: one norm and one block a layer: Mamba-2, attention without positions, feed-forward, or experts."""

from typing import Any

from estimator.step import experts, ops, routers, state_space
from estimator.step.families.llama import Shared, unturned, values
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, embedded
from estimator.step.norms import rms_scaled_in_full
from estimator.step.tape import Tensor
from estimator.step.written import attend

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("nemotron_h",)


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return embedded(model, model.stem.name_of("embedding"), ids)


def shared(model: Model, hidden: Tensor) -> Any:
    """Position ids and the mask of the attention layers."""
    ids = positions(model)
    return Shared(ids, ids, ids, causal_mask(model, hidden), None)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """The norm, then the block of this kind of layer, added."""
    residual = x
    with model.tape.inside("norm"):
        x = rms_scaled_in_full(layer, x, "norm")
    return ops.add(residual, block(model, layer, x, around))


def block(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """What the layer does, by its kind."""
    assert layer.kind is not None
    if layer.kind.attention == "ssm":
        with model.tape.inside("attention"):
            return state_space.mixer(model, layer, x, "mixer")
    if layer.kind.attention == "full":
        with model.tape.inside("attention"):
            return attention(model, layer, x, around)[0]
    with model.tape.inside("mlp"):
        if layer.kind.mlp == "moe":
            return experts.block(model, layer, x, routers.sigmoid_limited)
        return experts.mlp(model, layer, x)


def attention(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """Attention without positions."""
    q, k, v = (layer.linear(x, f"mixer.{part}_proj") for part in "qkv")
    k, v = layer.cached(k, v)
    q, k = unturned(model, q, k, around.full)
    out, scores = attend(model, q, k, values(model, q, v, around.full), around.full)
    return layer.linear(out, "mixer.o_proj"), scores


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_scaled_in_full(model.top, x, "norm_f")
