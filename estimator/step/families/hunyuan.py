"""Hunyuan (dense): Llama with a norm over each head of queries and keys, behind the positions."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["attention", "layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with the norms after the rotary embedding."""
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    q = layer.rms_norm(q, "self_attn.query_layernorm", model.arch.heads)
    k = layer.rms_norm(k, "self_attn.key_layernorm", model.arch.kv_heads)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
