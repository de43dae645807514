"""Jamba: Mamba-1 layers, every few layers attention without positions; dense blocks and experts in turn."""

from typing import Any

from estimator.step import experts, routers, selective_scan
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, stem, unturned, values
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import attend

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("jamba",)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Position ids and the mask of the attention layers."""
    ids = positions(model)
    return Shared(ids, ids, ids, causal_mask(model, hidden), None)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer of either kind."""
    return blocks.pre_norm(model, layer, x, around, mixer, feed_forward)


def mixer(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """State space or attention."""
    if layer.kind is not None and layer.kind.attention == "ssm":
        return selective_scan.mixer(model, layer, x, "mamba"), None
    q, k, v = (layer.linear(x, f"self_attn.{part}_proj") for part in "qkv")
    k, v = layer.cached(k, v)
    q, k = unturned(model, q, k, around.full)
    out, scores = attend(model, q, k, values(model, q, v, around.full), around.full)
    return layer.linear(out, "self_attn.o_proj"), scores


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts, or the dense block."""
    if layer.kind is not None and layer.kind.mlp == "moe":
        return experts.block(model, layer, x, routers.softmax_plain)
    return experts.mlp(model, layer, x)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.rms_norm(x, "final_layernorm")
