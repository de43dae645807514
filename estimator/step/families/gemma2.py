"""Gemma 2: Gemma with four norms a layer, windowed layers in turn, and attention written out with a soft cap."""

from estimator.step import ops
from estimator.step.attention import eager, rotate
from estimator.step.families import blocks
from estimator.step.families.gemma import stem, top
from estimator.step.families.llama import Shared, mlp, projected, shared
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_plus_one
from estimator.step.tape import Tensor
from estimator.step.written import rate

__all__ = ["layer", "shared", "stem", "top"]


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.sandwich(model, layer, x, around, attention, mlp, rms_plus_one)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """As Llama's; no kernel caps scores, so that transformers runs this family with attention written out."""
    arch = model.arch
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    change = capped if arch.attention_softcap else None
    dropout = rate(model, arch.attention_dropout)
    out = eager(q, k, v, arch.heads, arch.kv_heads, around.mask(layer), dropout, change)
    return layer.linear(out, "self_attn.o_proj")


def capped(scores: Tensor) -> Tensor:
    """``tanh(scores / cap) * cap``."""
    scores = ops.scale(scores)
    scores = ops.tanh(scores)
    return ops.scale(scores)
