"""StableLM: layer norms, partial rotary positions, and blocks one after the other or in parallel."""

from estimator.step import ops
from estimator.step.attention import rotate
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem
from estimator.step.families.rotary import cut
from estimator.step.families.starcoder2 import top
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import rate

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer; the normed input lives as long as the layer runs."""
    residual = x
    with model.tape.inside("norm"):
        x = layer.layer_norm(x, "input_layernorm")
    with model.tape.inside("attention"):
        added, _scores = attention(model, layer, x, around)
    if not model.arch.parallel_residual:
        residual = ops.add(residual, added)
    with model.tape.inside("mlp"):
        changed = mlp(model, layer, x if model.arch.parallel_residual else second_norm(layer, residual))
    changed = ops.dropout(changed, rate(model, model.arch.dropout))
    if model.arch.parallel_residual:
        residual = ops.add(residual, added)
    return ops.add(residual, changed)


def second_norm(layer: Layer, x: Tensor) -> Tensor:
    """The norm in front of the feed-forward block."""
    return layer.layer_norm(x, "post_attention_layernorm")


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with partial rotary positions; the parts live as long as the attention."""
    arch, cos, sin = model.arch, around.cos, around.sin
    q, k, v = projected(layer, x)
    q_turned, q_rest = cut(q, cos.width * arch.heads)
    k_turned, k_rest = cut(k, cos.width * arch.kv_heads)
    q_turned, k_turned = rotate(q_turned, cos, sin), rotate(k_turned, cos, sin)
    q, k = ops.concat([q_turned, q_rest]), ops.concat([k_turned, k_rest])
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around, by_head=True)
