"""BitNet: Llama with squared ReLU and a norm before each last linear; its linears are plain ones in training."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, projected, shared, stem, top, values
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import attend

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's, with a norm between attention and output projection."""
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    mask = around.mask(layer)
    out, scores = attend(model, q, k, values(model, q, v, mask), mask)
    out = layer.rms_norm(out, "self_attn.attn_sub_norm")
    return layer.linear(out, "self_attn.o_proj"), scores


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(norm(act(gate(x)) * up(x)))``."""
    act = activation(model.arch.activation)
    return layer.linear(
        layer.rms_norm(
            ops.mul(act(layer.linear(x, "mlp.gate_proj")), layer.linear(x, "mlp.up_proj")), "mlp.ffn_sub_norm"
        ),
        "mlp.down_proj",
    )
