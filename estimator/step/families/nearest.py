"""The nearest composition for decoders whose own code is not part of transformers.

Parameters are found by the part that they play, the arrangement follows the architecture's facts: fused or separate
projections, gated or plain feed-forward block, norms, rotary positions. What such code does beyond that (its own
copies, masks, attention kernels) is not known here: see ``decoders.APPROXIMATE``.
"""

from collections.abc import Callable

from estimator.errors import EstimatorError
from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, attended, shared
from estimator.step.families.rotary import partial
from estimator.step.model import Layer, Model, embedded
from estimator.step.norms import Norm, layer_norm, rms, rms_plus_one
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return embedded(model, model.stem.name_of("embedding"), ids)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return arrangement(model)(model, layer, x, around, attention, mlp, norm_of(model))


def norm_of(model: Model) -> Norm:
    """The norm that the architecture states."""
    if model.arch.norm != "rms":
        return layer_norm
    return rms_plus_one if model.arch.norm_plus_one else rms


def arrangement(model: Model) -> Callable[..., Tensor]:
    """The block whose norms stand where the architecture's do."""
    places = {place for place, _ in model.arch.norm_names}
    if model.arch.parallel_residual:
        return blocks.parallel
    if len(places) == 4:
        return blocks.sandwich
    return blocks.pre_norm if "pre_attention" in places else blocks.post_norm


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, norms of queries and keys, rotary, attention, output projection."""
    arch = model.arch
    q, k, v = projected(model, layer, x)
    if layer.name_of("q_norm"):
        heads = (1, 1) if arch.qk_norm_full else (arch.heads, arch.kv_heads)
        norm = norm_of(model)
        q = norm(layer, q, layer.module_of("q_norm"), heads[0])
        k = norm(layer, k, layer.module_of("k_norm"), heads[1])
    cut = arch.positions == "rope" and arch.rotary_fraction < 1
    if cut:
        q, k = partial(q, k, around.cos, around.sin, (arch.heads, arch.kv_heads))
    elif arch.positions == "rope":
        q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    output, kv_heads = layer.module_of("o_proj"), arch.kv_shape(layer.kind.attention if layer.kind else "full")[0]
    return attended(model, layer, q, k, v, around, by_head=cut, kv_heads=kv_heads, projection=output)


def projected(model: Model, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values from one projection or from three."""
    fused = layer.module_of("qkv_proj")
    if fused:
        widths = [model.arch.heads * model.arch.head_dim, model.arch.kv_width, model.arch.kv_width]
        q, k, v = ops.split(layer.linear(x, fused), widths)
        return q, k, v
    q, k = layer.linear(x, layer.module_of("q_proj")), layer.linear(x, layer.module_of("k_proj"))
    own_values = layer.module_of("v_proj")
    return q, k, layer.linear(x, own_values) if own_values else k


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """A gated feed-forward block, its two inner matrices fused or not, or a plain one."""
    if layer.kind is None or layer.kind.mlp != "dense":
        raise EstimatorError(f"no timeline for the experts of {model.arch.model_type!r} yet", field="model")
    act, fused = activation(model.arch.activation), layer.module_of("gate_up_proj")
    gate, up, down = (layer.module_of(f"{part}_proj") for part in ("gate", "up", "down"))
    if fused:
        first, second = ops.split(layer.linear(x, fused), [model.arch.intermediate] * 2)
        return layer.linear(ops.mul(act(first), second), down)
    if gate:
        return layer.linear(ops.mul(act(layer.linear(x, gate)), layer.linear(x, up)), down)
    return layer.linear(act(layer.linear(x, up)), down)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return norm_of(model)(model.top, x, model.top.module_of("final_norm"))
