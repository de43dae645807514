"""Youtu: DeepSeek-V3's latent attention with dense feed-forward blocks only."""

from estimator.step import latent
from estimator.step.families import blocks
from estimator.step.families.llama import Shared, mlp, stem, top
from estimator.step.families.moe import latent_attention
from estimator.step.masks import causal_mask, positions
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor

__all__ = ["layer", "shared", "stem", "top"]


def shared(model: Model, hidden: Tensor) -> Shared:
    """Position ids, the mask, and tables of the rotary part's width."""
    ids, mask = positions(model), causal_mask(model, hidden)
    return Shared(ids, *latent.tables(model, hidden.itemsize), mask, None)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, latent_attention, mlp)
