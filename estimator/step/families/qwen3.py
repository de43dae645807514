"""Qwen 3: Llama with a norm over each head of queries and keys, before the positions."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, shared, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import by_token

__all__ = ["attention", "layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, each projection followed by its norm."""
    q = layer.rms_norm(by_token(layer.linear(x, "self_attn.q_proj")), "self_attn.q_norm", model.arch.heads)
    k = layer.rms_norm(by_token(layer.linear(x, "self_attn.k_proj")), "self_attn.k_norm", model.arch.kv_heads)
    v = layer.linear(x, "self_attn.v_proj")
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
