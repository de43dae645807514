"""StableLM: layer norms, partial rotary positions, and blocks one after the other or in parallel."""

from estimator.step import ops
from estimator.step.families.llama import Shared, attended, mlp, projected, shared, stem
from estimator.step.families.rotary import partial
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
        added = attention(model, layer, x, around)
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


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """As Llama's, with partial rotary positions."""
    arch = model.arch
    q, k, v = projected(layer, x)
    q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around, by_head=True)
