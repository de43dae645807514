"""Command R (Cohere): parallel blocks behind one layer norm written out, interleaved rotary pairs in fp32."""

from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem
from estimator.step.families.rotary import in_full
from estimator.step.model import Layer, Model
from estimator.step.norms import centred
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.parallel(model, layer, x, around, attention, mlp, centred)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, norms of queries and keys where the model has them, rotary, attention, output projection."""
    q, k, v = projected(layer, x)
    if layer.has("self_attn.q_norm.weight"):
        q = centred(layer, q, "self_attn.q_norm", model.arch.heads)
        k = centred(layer, k, "self_attn.k_norm", model.arch.kv_heads)
    q, k = in_full(q, k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return centred(model.top, x, "norm")
