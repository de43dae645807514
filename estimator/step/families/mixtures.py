"""Mixtures of experts, latent and linear attention, state spaces: which module composes which model type."""

from types import ModuleType

from estimator.step.families import moe, nemotron_h, qwen3_next

MIXTURES: dict[str, ModuleType] = {
    **dict.fromkeys(moe.TYPES, moe),
    **dict.fromkeys(qwen3_next.TYPES, qwen3_next),
    **dict.fromkeys(nemotron_h.TYPES, nemotron_h),
}

APPROXIMATE: dict[str, str] = {}
"""Model type to why its timeline is that of the nearest composition, in one sentence."""
