"""Gemma 2: Gemma with four norms a layer, windowed layers in turn, and attention written out with a soft cap."""

from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.families.gemma import stem, top
from estimator.step.families.llama import Shared, gathered, mlp, projected
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_plus_one
from estimator.step.tape import Tensor
from estimator.step.written import attend, by_token

__all__ = ["layer", "shared", "stem", "top"]


def shared(model: Model, hidden: Tensor) -> Shared:
    """Tables, and masks for attention that is written out."""
    return gathered(model, hidden, hidden.itemsize, "eager")


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.sandwich(model, layer, x, around, attention, mlp, rms_plus_one)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """As Llama's; no kernel caps scores, so that transformers runs this family with attention written out."""
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    capped = bool(model.arch.attention_softcap)
    out, scores = attend(model, q, k, by_token(v), around.mask(layer), capped=capped, attention="eager")
    return layer.linear(out, "self_attn.o_proj"), scores
