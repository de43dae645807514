"""What the catalogue knows of a model or a card by name."""

from bot.answer import Known
from estimator.catalogue import find_model
from estimator.catalogue.gpus import find_gpu
from estimator.catalogue.models import ModelMatch

BYTES_BF16 = 2


def known_model(name: str, zh: bool) -> Known:
    """Size and shape of the model that a name means. Raises EstimatorError."""
    found = find_model(name)
    return Known(kind="model", name=found.id, facts=_of_model(found), note=found.note_zh if zh else found.note)


def _of_model(found: ModelMatch) -> dict[str, object]:
    arch = found.architecture
    facts = {
        "parameters": found.params_total,
        "weights_bf16_bytes": found.params_total * BYTES_BF16,
        "weight_format": found.weight_format,
        "layers": arch.layers,
        "hidden": arch.hidden,
        "heads": arch.heads,
        "kv_heads": arch.kv_heads,
        "experts": arch.experts.experts if arch.experts else None,
        "experts_used": arch.experts.per_token if arch.experts else None,
        "vocab": arch.vocab,
        "context": arch.max_positions,
        "stored_type": found.default_dtype,
    }
    return {name: value for name, value in facts.items() if value}


def known_card(name: str, zh: bool) -> Known:
    """Memory and abilities of the card that a name means. Raises EstimatorError."""
    found = find_gpu(name)
    facts = {
        "memory_gb": float(found.nominal_gb),
        "usable_low_bytes": found.usable_low,
        "usable_high_bytes": found.usable_high,
        "architecture": found.arch,
        "compute_capability": found.compute_capability,
        "bf16": found.bf16,
        "fp8": found.fp8,
        "flash_attention_2": found.flash_attn2,
    }
    if found.usable_low == found.usable_high:
        del facts["usable_high_bytes"]
    kept = {name: value for name, value in facts.items() if value not in ("", None)}
    return Known(kind="gpu", name=found.name, facts=kept, note=found.note_zh if zh else found.note)
