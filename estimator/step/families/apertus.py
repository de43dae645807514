"""Apertus: Qwen 3's attention and a plain feed-forward block with the trained activation xIELU."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, projected, shared, stem, top
from estimator.step.families.xielu import xielu
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, norms of queries and keys, rotary, attention, output projection."""
    q, k, v = projected(layer, x)
    q = layer.rms_norm(q, "self_attn.q_norm", model.arch.heads)
    k = layer.rms_norm(k, "self_attn.k_norm", model.arch.kv_heads)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(xielu(up(x)))``."""
    x = layer.linear(x, "mlp.up_proj")
    return layer.linear(xielu(model, layer, x, "mlp.act_fn"), "mlp.down_proj")
