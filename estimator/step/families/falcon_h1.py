"""Falcon-H1: Mamba-2 and attention side by side on one norm, with multipliers before and behind every block."""

from estimator.step import ops, state_space
from estimator.step.activations import activation
from estimator.step.attention import rotate
from estimator.step.families import granite, llama
from estimator.step.families.llama import Shared, shared
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import by_token

__all__ = ["layer", "shared", "stem", "top"]

TYPES = ("falcon_h1",)

stem = granite.stem


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    residual = x
    with model.tape.inside("norm"):
        x = layer.rms_norm(x, "input_layernorm")
    with model.tape.inside("attention"):
        mixed = ops.scale(state_space.mixer(model, layer, x, "mamba", multiplied=True))
        attended, _scores = attention(model, layer, ops.scale(x), around)
        attended = ops.scale(attended)
    x = ops.add(mixed, attended)
    x = ops.add(residual, x)
    residual = x
    with model.tape.inside("norm"):
        x = layer.rms_norm(x, "pre_ff_layernorm")
    with model.tape.inside("mlp"):
        x = mlp(model, layer, x)
    return ops.add(residual, x)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Llama's, with a multiplier on the keys."""
    q = by_token(layer.linear(x, "self_attn.q_proj"))
    k = ops.scale(by_token(layer.linear(x, "self_attn.k_proj")))
    v = layer.linear(x, "self_attn.v_proj")
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return llama.attended(model, layer, q, k, v, around)


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """A gated block with multipliers on the gate and on the result."""
    act = activation(model.arch.activation)
    up = layer.linear(x, "feed_forward.up_proj")
    gate = act(ops.scale(layer.linear(x, "feed_forward.gate_proj")))
    return ops.scale(layer.linear(ops.mul(up, gate), "feed_forward.down_proj"))


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.rms_norm(x, "final_layernorm")
