"""Mixtures of experts, latent and linear attention, state spaces: which module composes which model type."""

from types import ModuleType

from estimator.step.families import (
    falcon_h1,
    gpt_oss,
    granite_hybrid,
    jamba,
    lfm2,
    llama4,
    mamba,
    moe,
    nearest_mixture,
    nemotron_h,
    qwen3_next,
)

MIXTURES: dict[str, ModuleType] = {
    **dict.fromkeys(moe.TYPES, moe),
    **dict.fromkeys(qwen3_next.TYPES, qwen3_next),
    **dict.fromkeys(nemotron_h.TYPES, nemotron_h),
    **dict.fromkeys(mamba.TYPES, mamba),
    **dict.fromkeys(granite_hybrid.TYPES, granite_hybrid),
    **dict.fromkeys(lfm2.TYPES, lfm2),
    **dict.fromkeys(gpt_oss.TYPES, gpt_oss),
    **dict.fromkeys(llama4.TYPES, llama4),
    **dict.fromkeys(jamba.TYPES, jamba),
    **dict.fromkeys(falcon_h1.TYPES, falcon_h1),
    "phimoe": nearest_mixture,
}

_NEAR = "composed of {} in place of its own code, which is not followed step by step"
_MIXTURE = _NEAR.format("Llama's attention and experts behind a softmax router")
_LATENT = _NEAR.format("DeepSeek-V3's latent attention and experts behind a softmax router")

NEAREST: dict[str, str] = {
    **dict.fromkeys(("bailing_moe", "deepseek", "grok", "dbrx", "cohere2_moe", "exaone_moe"), _MIXTURE),
    **dict.fromkeys(("afmoe", "hy_v3", "laguna", "beam", "mimo_v2_flash", "sarvam_moe", "minimax_m3"), _MIXTURE),
    "glm4v_moe_text": _MIXTURE,
    **dict.fromkeys(("glm_moe_dsa", "deepseek_v32"), _LATENT + " (the sparse-attention indexer is left out)"),
    **dict.fromkeys(("axk1", "mistral4", "sarvam_mla"), _LATENT),
}
"""Model type to why its timeline is that of the nearest composition, in one sentence."""

_TRAINING = "followed and traced in training without the {} kernels, which keep less; generation is not traced"
PARTLY: dict[str, str] = {
    "kimi_k2": "its own code is that of DeepSeek-V3, which is traced in its place",
    "llama4_text": "its chunked attention is counted without the mask that rows longer than a chunk need",
    "qwen3_5_moe_text": _TRAINING.format("flash-linear-attention"),
    **dict.fromkeys(("mamba", "falcon_mamba", "jamba", "falcon_h1"), _TRAINING.format("mamba-ssm")),
}
"""Model type to what of it was never traced, in one sentence."""

APPROXIMATE = NEAREST | PARTLY
MIXTURES.update(dict.fromkeys(NEAREST, nearest_mixture))

MISSING: dict[str, tuple[str, str]] = {
    "minimax": ("the lightning attention of MiniMax-01 is", "MiniMax-01 的 lightning attention "),
    "kimi_linear": ("the delta attention of Kimi Linear is", "Kimi Linear 的 delta attention "),
    "olmo_hybrid": ("the linear-attention layers of OLMo Hybrid are", "OLMo Hybrid 的线性注意力层"),
}
"""Model type to the part of it that has no timeline, in both languages."""
