"""Gemma 3: Gemma 2's layers with normed queries and keys, no soft cap, and rotary tables for each kind of layer."""

from estimator.step.attention import rotate
from estimator.step.families import blocks, llama
from estimator.step.families.gemma import stem, top
from estimator.step.families.llama import attended, mlp, projected, windowed
from estimator.step.model import Layer, Model
from estimator.step.norms import rms_plus_one
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


class Shared(llama.Shared):
    """As Llama's, with tables of their own for windowed layers."""

    def __init__(self, base: llama.Shared, tables: tuple[Tensor, Tensor] | None) -> None:
        super().__init__(base.ids, base.cos, base.sin, base.full, base.sliding)
        self.tables = tables

    def turns(self, layer: Layer) -> tuple[Tensor, Tensor]:
        """The tables of a layer of this kind."""
        return self.tables if self.tables is not None and windowed(layer) else (self.cos, self.sin)

    def of(self, layer: Layer) -> "Shared":
        """What one layer is handed: its kind's mask and tables."""
        base = super().of(layer)
        base.cos, base.sin = self.turns(layer)
        return Shared(base, None)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Masks, and one pair of tables per kind of layer, in the type of the residual stream."""
    return gathered(model, hidden, hidden.itemsize)


def gathered(model: Model, hidden: Tensor, itemsize: int) -> Shared:
    """The same with tables of ``itemsize``."""
    base = llama.gathered(model, hidden, itemsize)
    mixed = len(set(model.arch.layer_types)) > 1
    return Shared(base, llama.rotary(model, itemsize) if mixed else None)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.sandwich(model, layer, x, around, attention, mlp, rms_plus_one)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, norms of queries and keys, rotary, attention, output projection."""
    q, k, v = projected(layer, x)
    q = rms_plus_one(layer, q, "self_attn.q_norm", model.arch.heads)
    k = rms_plus_one(layer, k, "self_attn.k_norm", model.arch.kv_heads)
    cos, sin = around.turns(layer)
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)
