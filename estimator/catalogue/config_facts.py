"""Facts of a config that only some families' steps read."""

from typing import Any

from estimator.catalogue.config_reader import ConfigReader

ROTARY_PARTS = {
    **dict.fromkeys(("gpt_neox", "stablelm", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), 0.25),
    **dict.fromkeys(("phi", "persimmon", "glm", "glm4", "glm4_moe", "nemotron", "recurrent_gemma", "bamba"), 0.5),
}
"""Class defaults that transformers 5.24.0 sets in code: the part of each head that is turned."""


def rotary_fraction(reader: ConfigReader) -> float:
    """The part of each head that rotary positions turn; GPT-J states its width in elements."""
    nested = reader.given("rope_parameters")
    stated = nested.get("partial_rotary_factor") if isinstance(nested, dict) else None
    turned = reader.optional("rotary_dim") or (64 if reader.model_type == "gptj" else 0)
    if turned:
        heads = max(reader.count("num_attention_heads"), 1)
        return turned / (reader.optional("head_dim") or reader.count("hidden_size") // heads)
    stated = stated or reader.get("rotary_pct") or reader.get("partial_rotary_factor")
    return float(stated or ROTARY_PARTS.get(reader.model_type, 1.0))


FACTS = (
    "norm_topk_prob", "topk_method", "n_group", "topk_group", "rope_interleave", "moe_renormalize", "scoring_func",
    "output_router_logits", "clip_qkv", "use_mamba_kernels", "chunk_size", "mamba_chunk_size", "attn_output_gate",
    "alibi", "num_kv_shared_layers", "no_rope_layer_interval", "no_rope_layers", "use_qk_norm",
    "attn_temperature_tuning",
)  # fmt: skip
"""Config keys that only one family's step reads; its own code holds the class default."""


def stated_facts(reader: ConfigReader) -> tuple[tuple[str, Any], ...]:
    """What the config states of ``FACTS``; a list of flags, one a layer, as a string of digits."""
    found = ((name, _digits(reader.given(name))) for name in FACTS)
    return tuple((name, value) for name, value in found if isinstance(value, bool | int | float | str))


def _digits(value: Any) -> Any:
    flags = isinstance(value, list) and all(flag in (0, 1) for flag in value)
    return "".join(str(int(flag)) for flag in value) if flags else value
