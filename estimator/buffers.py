"""Buffers that the model classes of transformers 5.24 register on the card beside their parameters."""

from collections.abc import Iterator

from estimator.architecture import Architecture
from estimator.step.tape import FULL, LONG

Buffer = tuple[str, int, int]
"""Name, bytes of one, and how many there are."""

PER_TYPE_ROTARY = frozenset(
    [
        "gemma3_text",
        "gemma3n_text",
        "gemma4_text",
        "olmo3",
        "modernbert",
        "mellum",
        "mimo_v2_flash",
        "laguna",
        "step3p7",
        "granite_swa",
    ]
)
"""Types with a rotary table per kind of attention layer."""
SCALED_EMBEDDING = frozenset(["gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text"])
POSITION_TABLES = {"bert": 2, "roberta": 2, "xlm-roberta": 2, "distilbert": 1}
"""Encoders: int64 vectors over all positions (position and token-type ids)."""


def buffers(arch: Architecture, itemsize: int, cached_rotary: bool = False) -> Iterator[Buffer]:
    """Every buffer of one model; ``cached_rotary``: see ``habits.CACHED_ROTARY``."""
    yield from _positions(arch)
    if arch.model_type in ("bart", "mbart"):
        yield "final_logits_bias", arch.vocab * itemsize, 1
    if arch.model_type == "m2m_100":
        yield "embed_positions", (arch.max_positions + 2) * arch.hidden * itemsize, 2
    if cached_rotary:
        size = FULL if arch.model_type == "gpt_neox" else itemsize
        yield "cos_cached", arch.max_positions * _rotary_width(arch) * size, 2 * arch.layers
    if arch.model_type in SCALED_EMBEDDING:
        yield "embed_scale", itemsize, 1


def _positions(arch: Architecture) -> Iterator[Buffer]:
    tables = POSITION_TABLES.get(arch.model_type)
    if tables:
        yield "position_ids", arch.max_positions * LONG, tables
    elif arch.model_type == "gpt_bigcode":
        yield "bias", arch.max_positions**2, 1
    elif arch.model_type in ("gptj", "codegen"):
        yield "embed_positions", arch.max_positions * _rotary_width(arch) * FULL, 1
    elif arch.model_type == "gpt_neo":
        yield "bias", arch.max_positions**2, arch.layers
    elif arch.positions == "rope":
        kinds = {kind for kind in arch.layer_types if kind in ("full", "sliding")}
        per_type = arch.model_type in PER_TYPE_ROTARY
        yield "inv_freq", _rotary_width(arch) // 2 * FULL, 2 * (len(kinds) if per_type else 1)


def _rotary_width(arch: Architecture) -> int:
    if arch.latent is not None:
        return arch.latent.rope_dim
    return int(arch.head_dim * arch.rotary_fraction)
