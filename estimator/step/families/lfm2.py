"""LFM2: short gated convolutions, every few layers attention; a gated feed-forward block or experts."""

from typing import Any

from estimator.step import experts, ops, routers
from estimator.step.attention import rotate
from estimator.step.families import blocks, llama
from estimator.step.families.llama import shared, stem
from estimator.step.linear_attention import causal_convolution, copied_back
from estimator.step.model import Layer, Model
from estimator.step.routers import fact
from estimator.step.tape import Tensor
from estimator.step.written import by_token

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("lfm2", "lfm2_moe")


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer of either kind."""
    return blocks.pre_norm(model, layer, x, around, mixer, feed_forward)


def mixer(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """A short convolution or attention."""
    if layer.kind is not None and layer.kind.attention == "conv":
        return short_convolution(model, layer, x), None
    arch = model.arch
    q = layer.rms_norm(by_token(layer.linear(x, "self_attn.q_proj")), "self_attn.q_layernorm", arch.heads)
    k = layer.rms_norm(by_token(layer.linear(x, "self_attn.k_proj")), "self_attn.k_layernorm", arch.kv_heads)
    v = layer.linear(x, "self_attn.v_proj")
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return llama.attended(model, layer, q, k, v, around, projection="self_attn.out_proj")


def short_convolution(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``out(c * conv(b * x))``, run over transposed views."""
    width = model.arch.hidden
    both = copied_back(layer.linear(x, "conv.in_proj"))
    b, c, h = ops.split(both, (width, width, width))
    h = ops.mul(b, h)
    h = causal_convolution(layer, h, "conv.conv", int(fact(model, "conv_length", 3)), activated=False)
    y = ops.copy(ops.mul(c, h))
    del both
    return layer.linear(y, "conv.out_proj")


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts, or the dense block."""
    if layer.kind is not None and layer.kind.mlp == "moe":
        return experts.block(model, layer, x, routers.sigmoid_out_of_place)
    return experts.mlp(model, layer, x)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.rms_norm(x, "embedding_norm")
