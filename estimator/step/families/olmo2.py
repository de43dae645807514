"""OLMo 2: norms behind the blocks, normed queries and keys over their whole width, rotary tables in fp32."""

from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, stem
from estimator.step.families.olmo import shared
from estimator.step.families.rotary import widened
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_scaled_first
from estimator.step.tape import Tensor
from estimator.step.written import by_token

__all__ = ["layer", "normed", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.post_norm(model, layer, x, around, attention, mlp, rms_scaled_first)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with normed queries and keys, turned in fp32."""
    q, k, v = normed(layer, x)
    q, k = widened(q, k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def normed(layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Projections, queries and keys each with its norm."""
    q = by_token(rms_scaled_first(layer, layer.linear(x, "self_attn.q_proj"), "self_attn.q_norm"))
    k = by_token(rms_scaled_first(layer, layer.linear(x, "self_attn.k_proj"), "self_attn.k_norm"))
    return q, k, layer.linear(x, "self_attn.v_proj")


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return rms_scaled_first(model.top, x, "norm")
