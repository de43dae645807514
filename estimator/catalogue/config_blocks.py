"""The rarer blocks that a config describes: experts, latent attention, linear attention, state-space layers."""

from typing import Any

from estimator.architecture import Experts, LatentAttention, LinearAttention, StateSpace
from estimator.catalogue.config_reader import ConfigReader, whole

Row = dict[str, Any]


def experts(reader: ConfigReader, family: Row) -> Experts:
    """The experts of a sparse layer."""
    width = reader.optional("moe_intermediate_size") or reader.count("intermediate_size")
    shared = reader.optional("shared_expert_intermediate_size")
    if shared is None:
        shared = width if family.get("shared_is_width") else (reader.optional("num_shared_experts") or 0) * width
    return Experts(
        experts=reader.count("num_experts"),
        per_token=reader.count("num_experts_per_tok"),
        width=width,
        shared_width=shared,
        shared_gate=bool(family.get("shared_gate")),
        dense_first_layers=reader.optional("first_k_dense_replace") or 0,
        latent=(reader.optional(family["latent_experts"]) or 0) if "latent_experts" in family else 0,
    )


def latent(reader: ConfigReader) -> LatentAttention:
    """Ranks and widths of latent attention."""
    return LatentAttention(
        q_rank=reader.optional("q_lora_rank"),
        kv_rank=reader.count("kv_lora_rank"),
        nope_dim=reader.count("qk_nope_head_dim"),
        rope_dim=reader.count("qk_rope_head_dim"),
        value_dim=reader.count("v_head_dim"),
    )


def linear(reader: ConfigReader, family: Row, heads: int, hidden: int) -> LinearAttention:
    """Heads of linear attention layers; MiniMax takes those of its softmax layers."""
    if family.get("linear") == "heads":
        width = reader.given("linear_key_head_dim") or reader.optional("head_dim") or hidden // max(heads, 1)
        head_dim = whole("head_dim", width)
        return LinearAttention(heads, heads, head_dim, head_dim, reader.optional("linear_conv_kernel_dim") or 0)
    key_heads = reader.optional("linear_num_key_heads") or heads
    key_dim = reader.optional("linear_key_head_dim") or int(0.75 * hidden / max(key_heads, 1))
    return LinearAttention(
        key_heads=key_heads,
        value_heads=reader.optional("linear_num_value_heads") or heads,
        key_dim=key_dim,
        value_dim=reader.optional("linear_value_head_dim") or 2 * key_dim,
        conv_kernel=reader.count("linear_conv_kernel_dim", 4),
    )


def state_space(reader: ConfigReader, family: Row, hidden: int) -> StateSpace:
    """Widths of Mamba-like layers."""
    expand = reader.get("mamba_expand") or 2
    stated = reader.optional("mamba_d_ssm")
    heads = reader.optional("mamba_n_heads") or 0
    head_dim = whole("mamba_d_head", reader.get("mamba_d_head")) if isinstance(reader.get("mamba_d_head"), int) else 0
    inner = stated or (heads * head_dim if heads and head_dim else int(expand * hidden))
    rank = reader.get("mamba_dt_rank")
    return StateSpace(
        version=family["ssm"],
        inner=inner,
        state=reader.count("mamba_d_state", 16),
        conv_kernel=reader.count("mamba_d_conv", 4),
        heads=heads,
        groups=reader.optional("mamba_n_groups") or 1,
        dt_rank=rank if isinstance(rank, int) and rank else -(-hidden // 16),
        head_dim=head_dim or (inner // heads if heads else 0),
    )
