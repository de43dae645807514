"""Granite 4 (granitemoehybrid): Mamba-2 and attention layers, a fused shared block, with or without experts."""

from typing import Any

from estimator.step import experts, ops, routers, state_space
from estimator.step.attention import rotate
from estimator.step.families import blocks, granite, llama
from estimator.step.families.granite import shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("granitemoehybrid",)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer of either kind."""
    return blocks.pre_norm(model, layer, x, around, mixer, feed_forward, change=granite.multiplied)


def mixer(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """State space or attention, the latter with positions where the config asks for them."""
    if layer.kind is not None and layer.kind.attention == "ssm":
        return state_space.mixer(model, layer, x, "mamba"), None
    turned = model.arch.positions == "rope"
    q, k, v = llama.projected(layer, x, turned=turned)
    if turned:
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    else:
        q, k = llama.unturned(model, q, k, around.mask(layer))
    k, v = layer.cached(k, v)
    return llama.attended(model, layer, q, k, v, around)


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts (if any) and the shared block, whose two inner matrices are one."""
    if layer.kind is None or layer.kind.mlp != "moe":
        return fused(layer, x)
    routed = experts.block(model, layer, x, routers.softmax_of_best)
    return ops.add(routed, fused(layer, x))


def fused(layer: Layer, x: Tensor) -> Tensor:
    """``out(silu(first half) * second half)``."""
    both = layer.linear(x, "shared_mlp.input_linear")
    first, second = ops.split(both, (both.width // 2, both.width // 2))
    del both
    return layer.linear(ops.mul(ops.silu(first), second), "shared_mlp.output_linear")
