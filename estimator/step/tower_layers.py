"""One layer of an image tower, by form (transformers 5.24, models/clip, siglip, qwen2_vl, qwen2_5_vl, qwen3_vl)."""

from typing import NamedTuple

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate, sdpa
from estimator.step.model import Layer
from estimator.step.tape import FULL, Tape, Tensor
from estimator.vision.tower import Tower


class Around(NamedTuple):
    """Rotary tables that all layers read, where the form has them."""

    cos: Tensor | None
    sin: Tensor | None


def rotary_tables(tape: Tape, tower: Tower) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every patch, in fp32."""
    angles = tape.new("V", tower.head_dim // 2, FULL)
    halves = [tape.like(angles) for _ in range(2)]
    del angles
    tables = tape.new("V", tower.head_dim, FULL), tape.new("V", tower.head_dim, FULL)
    del halves
    return tables


def vit(tower: Tower, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """CLIP and SigLIP: norms in front, three projections, a plain feed-forward block."""
    del around
    h = layer.layer_norm(x, "layer_norm1")
    h = _attention(tower, layer, h)
    x = ops.add(x, h)
    h = layer.layer_norm(x, "layer_norm2")
    h = _mlp(tower, layer, h)
    return ops.add(x, h)


def _attention(tower: Tower, layer: Layer, x: Tensor) -> Tensor:
    q = layer.linear(x, "self_attn.q_proj")
    k = layer.linear(x, "self_attn.k_proj")
    v = layer.linear(x, "self_attn.v_proj")
    out = sdpa(q, k, v, tower.heads, tower.heads, None)
    return layer.linear(out, "self_attn.out_proj")


def _mlp(tower: Tower, layer: Layer, x: Tensor) -> Tensor:
    h = layer.linear(x, "mlp.fc1")
    h = activation(tower.activation)(h)
    return layer.linear(h, "mlp.fc2")


def qwen(tower: Tower, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """Qwen's vision block: one fused projection, rotary positions in fp32, each image attended by itself."""
    x = ops.add(x, _fused(tower, layer, _norm(tower, layer, x, "norm1"), around))
    return ops.add(x, _feed_forward(tower, layer, _norm(tower, layer, x, "norm2")))


def _norm(tower: Tower, layer: Layer, x: Tensor, name: str) -> Tensor:
    return layer.rms_norm(x, name) if tower.form == "qwen2_5" else layer.layer_norm(x, name)


def _fused(tower: Tower, layer: Layer, x: Tensor, around: Around) -> Tensor:
    q, k, v = ops.split(layer.linear(x, "attn.qkv"), [tower.hidden] * 3)
    q, k = _rotated(q, around), _rotated(k, around)
    apart = [ops.fresh_gradient(t) for t in (q, k, v)]
    out = ops.copy(sdpa(apart[0], apart[1], apart[2], tower.heads, tower.heads, None))
    return layer.linear(out, "attn.proj")


def _rotated(x: Tensor, around: Around) -> Tensor:
    assert around.cos is not None
    assert around.sin is not None
    return ops.cast(rotate(ops.cast(x, FULL), around.cos, around.sin), x.itemsize)


def _feed_forward(tower: Tower, layer: Layer, x: Tensor) -> Tensor:
    act = activation(tower.activation)
    if tower.form != "qwen2_5":
        return layer.linear(act(layer.linear(x, "mlp.fc1")), "mlp.fc2")
    gated = ops.mul(act(layer.linear(x, "mlp.gate_proj")), layer.linear(x, "mlp.up_proj"))
    return layer.linear(gated, "mlp.down_proj")


BLOCKS = {"clip": vit, "siglip": vit, "plain": vit, "qwen2": qwen, "qwen2_5": qwen, "qwen3": qwen}
