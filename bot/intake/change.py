"""A partial run laid over what was understood of a run."""

from collections.abc import Mapping
from typing import Any

from bot.intake.runs import Fields

FACTS_OF = {"model": ("resolved_model", "params_b"), "gpu": ("memory_gb",)}
"""What was found out about a field, and is no longer true once the field changes."""


def changed(fields: Fields, change: Mapping[str, Any]) -> Fields:
    """``fields`` after ``change``: groups are merged, null takes a field away, stale facts go."""
    stale = {fact for name in change for fact in FACTS_OF.get(name, ())}
    kept = {name: value for name, value in fields.items() if name not in stale}
    for name, value in change.items():
        known = kept.get(name)
        merged = isinstance(value, Mapping) and isinstance(known, dict) and name != "model"
        kept[name] = changed(known, value) if merged and known is not None else value
    return {name: value for name, value in kept.items() if value is not None}


def uncounted(fields: Fields) -> Fields:
    """A run without the number of its cards, and without what that number brought."""
    count = fields.get("gpu_count")
    spread = {
        name: size
        for name, size in (fields.get("parallel") or {}).items()
        if name != "data" and (name != "tensor" or size != count)
    }
    kept = {name: value for name, value in fields.items() if name not in ("gpu_count", "nodes", "parallel")}
    return {**kept, "parallel": spread} if spread else kept
