"""Sentences of entries with the figures of a failure filled in."""

import re

from knowledge.facts import Facts, size_told

PLACE = re.compile(r"\{(\w+)\}")
COUNTS = ("kv_tokens", "estimated_max_len", "max_model_len", "gpu_memory_utilization", "share_that_is_free")


def filled(text: str, facts: Facts) -> str:
    """The sentence with each {fact} as a size, or as a number where it is a count; an unknown fact reads "?"."""
    return PLACE.sub(lambda one: _shown(one[1], facts), text)


def _shown(name: str, facts: Facts) -> str:
    value = facts.get(name)
    if value is None:
        return "?"
    if name in COUNTS:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return size_told(value) if isinstance(value, int | float) else str(value)
