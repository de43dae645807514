"""The nearest composition for mixtures, latent attention and hybrids whose own code is not followed step by step.

Blocks are found by the parts that a layer's parameters play: latent or plain attention, Mamba-2, experts behind a
softmax router, shared experts. What such a class adds (indexers, extra gates, its own linear attention) is left out:
see ``mixtures.APPROXIMATE``.
"""

from typing import Any

from estimator.step import experts, latent, ops, routers, state_space
from estimator.step.families import moe, nearest
from estimator.step.families.llama import Shared
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.norms import layer_norm, rms
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]

stem, top = nearest.stem, nearest.top


def shared(model: Model, hidden: Tensor) -> Any:
    """Position ids, tables and masks."""
    if model.arch.latent is None:
        return nearest.shared(model, hidden)
    return Shared(positions(model), *latent.tables(model, hidden.itemsize), causal_mask(model, hidden), None)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """A norm before each block, and behind it where the class has one there."""
    norm = rms if model.arch.norm == "rms" else layer_norm
    names = dict(model.arch.norm_names)
    residual, first = x, names.get("pre_attention", "")
    x = norm(layer, x, first) if layer.has(f"{first}.weight") else x
    x, _scores = mixer(model, layer, x, around)
    x = norm(layer, x, names["post_attention"]) if layer.has(f"{names.get('post_attention')}.weight") else x
    x = ops.add(residual, x)
    if layer.kind is None or layer.kind.mlp == "none":
        return x
    residual, second = x, names.get("pre_mlp", "")
    x = norm(layer, x, second) if layer.has(f"{second}.weight") else x
    x = feed_forward(model, layer, x)
    x = norm(layer, x, names["post_mlp"]) if layer.has(f"{names.get('post_mlp')}.weight") else x
    return ops.add(residual, x)


def mixer(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """Latent attention, Mamba-2, or attention by the parts that the layer has."""
    arch = model.arch
    if layer.module_of("kv_a_proj"):
        return latent.attention(model, layer, x, (around.cos, around.sin), around.mask(layer), latent.rotate_pairs)
    if layer.kind is not None and layer.kind.attention in ("ssm", "hybrid") and arch.ssm and arch.ssm.version == 2:
        out = state_space.mixer(model, layer, x, "mamba")
        if layer.kind.attention == "ssm":
            return out, None
        attended, scores = moe.attention(model, layer, x, around)
        return ops.add(out, attended), scores
    if layer.module_of("qkv_proj"):
        return nearest.attention(model, layer, x, around)
    return moe.attention(model, layer, x, around)


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Experts behind a softmax router, or a dense block."""
    if layer.kind is not None and layer.kind.mlp == "moe":
        router = routers.sparse_mixer if model.arch.model_type == "phimoe" else routers.softmax
        return experts.block(model, layer, x, router)
    return nearest.mlp(model, layer, x)
