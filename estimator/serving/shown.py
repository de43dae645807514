"""What an engine shows on its card, low to high: the range by which everything here is judged.

A run fits when the high end is within the card (card.fit). Engines that fill a share of the card show that share and
what lies beyond it, however little the requests need. Where the share does not hold the requests, the range is what the
card would have to show if it did: as much above ``usable`` as the cache lacks, for what the engine leaves free stays.
"""

from estimator.schema import Range
from estimator.serving.facts import gib
from estimator.serving.memory import Memory
from estimator.serving.plan import Plan

CONTEXT = (0.25, 0.45, 0.75)
"""GiB of the CUDA context and loaded kernels (data/card.toml)."""
OWN_CONTEXT = ("sglang", "tgi", "llama.cpp", "ollama", "exllama", "autoawq")
"""Engines whose ``outside`` has the context already."""


def device(plan: Plan, found: Memory, usable: int | None) -> Range:
    """The range of one card; without a card what the engine would take for just these requests."""
    if found.filled is None or usable is None:
        return _taken(plan, found)
    filled = beyond_the_pool(plan, found)
    return filled if found.surely_holds else _with_lack(filled, found, usable)


def context_of(plan: Plan) -> tuple[int, int, int]:
    """Bytes of the context where ``outside`` leaves it out."""
    low, expected, high = (0, 0, 0) if plan.engine in OWN_CONTEXT else (gib(value) for value in CONTEXT)
    return low, expected, high


def _taken(plan: Plan, found: Memory) -> Range:
    allocated, (below, above) = found.allocated, found.uncertain
    low, expected, high = (one + around for one, around in zip(found.outside, context_of(plan), strict=True))
    return Range(low=allocated - below + low, expected=allocated + expected, high=allocated + above + high)


def beyond_the_pool(plan: Plan, found: Memory) -> Range:
    """The share and what lies beyond it; at least what the allocator holds and a context."""
    assert found.filled is not None
    low, expected, high = (beyond + around for beyond, around in zip(found.beyond, context_of(plan), strict=True))
    middle = max(found.filled + expected, found.allocated)
    return Range(low=min(found.allocated + low, middle), expected=middle, high=max(found.filled + high, middle))


def _with_lack(filled: Range, found: Memory, usable: int) -> Range:
    """What the requests need more than the share holds, or may need."""
    below, above = found.uncertain[1], found.uncertain[0]
    lacking = usable - found.room
    if found.room >= 0:
        return filled.model_copy(update={"high": max(filled.high, lacking + above)})
    expected = max(filled.expected, lacking)
    return Range(
        low=min(max(filled.low, lacking - below), expected), expected=expected, high=max(filled.high, lacking + above)
    )
