"""Llama 4: pairs turned as complex numbers in layers with positions, every expert run on every token."""

from collections.abc import Sequence
from typing import Any

from estimator.step import experts, latent, ops, routing
from estimator.step.activations import activation
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, stem, unturned, values
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model, linear
from estimator.step.norms import unscaled
from estimator.step.routers import fact, matrix, mixture
from estimator.step.tape import FULL, LONG, Tensor
from estimator.step.written import attend, by_token

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("llama4_text",)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Position ids, one table of complex rotations, and the mask."""
    ids, tape, pairs = positions(model), model.tape, model.arch.head_dim // 2
    angles = tape.new("s", pairs, FULL)
    polar = tape.new("s", pairs, LONG)
    table = tape.like(polar)
    del angles, polar
    mask = causal_mask(model, hidden)
    return Shared(ids, table, table, mask, mask)


def layer(model: Model, layer: Layer, x: Tensor, around: Any) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, feed_forward, norm)


def norm(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Llama's norm, whose parts live no longer than they are used."""
    return ops.mul(unscaled(x, groups), layer.weight(f"{name}.weight"))


def attention(model: Model, layer: Layer, x: Tensor, around: Any) -> tuple[Tensor, Tensor | None]:
    """Layers with positions norm their queries and keys, the others scale their queries by a temperature."""
    arch = model.arch
    q, k = (layer.linear(x, f"self_attn.{part}_proj") for part in "qk")
    v = layer.linear(x, "self_attn.v_proj")
    if layer.kind is not None and layer.kind.attention == "chunked":
        q, k = turned(q, k, around.cos)
        if fact(model, "use_qk_norm", True):
            q, k = unscaled(q, arch.heads), unscaled(k, arch.kv_heads)
        q, k = by_token(q), by_token(k)
    else:
        if fact(model, "attn_temperature_tuning", True):
            q = warmed(q)
        q, k = unturned(model, q, k, around.full)
    k, v = layer.cached(k, v)
    out, scores = attend(model, q, k, values(model, q, v, around.full), around.full, softmax="plain")
    return layer.linear(out, "self_attn.o_proj"), scores


def turned(q: Tensor, k: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs as complex numbers in fp32, times the table."""
    q_full, k_full = ops.cast(q, FULL), ops.cast(k, FULL)
    q_out = latent.times_complex(q_full, table)
    k_out = latent.times_complex(k_full, table)
    return ops.cast(q_out, q.itemsize), ops.cast(k_out, k.itemsize)


def warmed(q: Tensor) -> Tensor:
    """Queries times a factor per position, in fp32."""
    factors = q.tape.new("s", 1, FULL)
    return ops.cast(ops.mul(q, factors), q.itemsize)


def feed_forward(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The experts and the shared one, or the dense block."""
    if layer.kind is None or layer.kind.mlp != "moe":
        return experts.mlp(model, layer, x)
    logits = linear(x, matrix(layer), None, mixture(model).experts)
    scores = chosen(logits, mixture(model).per_token)
    count = mixture(model).experts
    routed = ops.mul(repeated(x, count), ops.copy(scores))
    routed = all_experts(model, layer, routed)
    out = experts.mlp(model, layer, x, "shared.")
    out = routing.add_in_place(out, summed(routed, count))
    del logits
    return out


def chosen(logits: Tensor, count: int) -> Tensor:
    """The best logits written into a tensor of minus infinity, then a sigmoid in fp32."""
    tape = logits.tape
    best, indices = routing.topk(logits, count)
    filled = tape.like(logits)
    out = filled.detach()
    if best.needs:
        shape = ops.shape_of(best)
        tape.attach(out, (best,), [tape.save(indices)], lambda g: (tape.new(*shape),))
    scores: Tensor = ops.cast(out, FULL)
    return ops.cast(ops.sigmoid(scores), logits.itemsize)


def repeated(x: Tensor, times: int) -> Tensor:
    """All tokens once for each expert; the gradients are summed."""
    tape = x.tape
    out = tape.new(x.rows, x.width * times, x.itemsize)
    if x.needs:
        shape = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(*shape),))
    return out


def summed(x: Tensor, count: int) -> Tensor:
    """The experts' results of each token added up, in fp32 under autocast; the gradient is copied out."""
    tape = x.tape
    out = tape.new(x.rows, x.width // count, FULL if tape.autocast else x.itemsize)
    if x.needs:
        shape = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(*shape),))
    return out


def all_experts(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Two batched products over the experts' stacked tensors."""
    first, second = (layer.weight(layer.name_of(f"experts.{part}_proj")) for part in ("gate_up", "down"))
    both = _product(x, first, 2 * mixture(model).width * mixture(model).experts)
    gate, up = ops.split(both, (both.width // 2, both.width // 2))
    return _product(ops.mul(up, activation(model.arch.activation)(gate)), second, x.width)


def _product(x: Tensor, weight: Tensor, width: int) -> Tensor:
    """``bmm`` with a stack of matrices; the input's gradient first."""
    weight = ops.autocast(weight)
    x = ops.autocast(x)
    tape = x.tape
    kept = [tape.save(t) for t, wanted in ((x, weight.needs), (weight, x.needs)) if wanted]
    out = tape.new(x.rows, width, x.itemsize)
    if not kept:
        return out
    left = ops.shape_of(x) if x.needs else None
    right = ("1", weight.width, weight.itemsize, "gradients") if weight.needs else None

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        return tape.new(*left) if left else None, tape.new(*right) if right else None

    return tape.attach(out, (x, weight), kept, backward)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return norm(model.top, x, "norm")
