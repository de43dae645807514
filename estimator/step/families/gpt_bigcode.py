"""GPT-BigCode (StarCoder, SantaCoder): GPT-2 with one head of keys and values for all queries."""

from estimator.step import ops
from estimator.step.families.classic import Around, dropped
from estimator.step.families.classic import shared as made
from estimator.step.families.gpt2 import block, stem, top
from estimator.step.model import Layer, Model
from estimator.step.tape import FULL, Tensor
from estimator.step.written import attend, by_token

__all__ = ["layer", "shared", "stem", "top"]


def shared(model: Model, hidden: Tensor) -> Around:
    """The mask; position ids stay with the base model."""
    around = made(model, hidden)
    if around.ids is not None:
        model.held.append(around.ids)
    around.ids = None
    return around


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block."""
    return block(model, layer, x, around, attention)


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Fused projection, attention, output projection, dropout."""
    arch = model.arch
    qkv = layer.linear(x, "attn.c_attn")
    if arch.kv_heads == arch.heads:
        qkv = by_token(qkv)
    if "cache-returned" in model.regime.quirks and not (model.tape.replaying or model.tape.rerunning):
        model.returned.append((model.tape.segment, qkv.detach()))
    q, k, v = ops.split(qkv, [arch.hidden, arch.kv_width, arch.kv_width])
    if q_copied(model, qkv, around.mask):
        q = by_token(q)
    k, v = layer.cached(k, v)
    out, weights = attend(model, q, k, v, around.mask)
    out = layer.linear(out, "attn.c_proj")
    return dropped(model, out), weights


def q_copied(model: Model, qkv: Tensor, mask: Tensor | None) -> bool:
    """Whether written-out attention, the model's or PyTorch's in fp32, hands back queries' gradients by heads."""
    if model.arch.kv_heads == model.arch.heads:
        return False
    in_full = qkv.itemsize == FULL and mask is None and not model.tape.autocast
    return model.regime.attention == "eager" or in_full
