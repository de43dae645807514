"""vLLM's pool of cache blocks: groups of layers that share one page size, and what a request takes of it.

Recipe (vllm v1/core/kv_cache_utils.py; exact on 22 of 22 published hybrids): layers of one kind are cut into groups of
as many layers as the rarest kind has; a block holds one page for each layer of a group; pages are made equal by longer
blocks of the layers that need less a token, and a state's page is padded.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from estimator.serving.kv_sizes import LayerCache

BLOCK = 16
"""Tokens of a block, and what longer blocks are multiples of."""

NEARLY_EQUAL = 1.25
"""Counts of layers closer than this share the larger group size."""


@dataclass(frozen=True, slots=True)
class Group:
    """``count`` groups alike; ``block`` tokens a block, 0 for states (one block a request whatever its length)."""

    count: int
    block: int
    window: int = 0

    def blocks(self, length: int, batched: int) -> int:
        """Blocks of one request with ``length`` tokens, ``batched`` of them in one step at most."""
        if not self.block:
            return self.count
        if not self.window:
            return self.count * -(-length // self.block)
        seen = min(self.window - 1 + batched, length)
        return self.count * (-(-seen // self.block) + 1)


class Pool(NamedTuple):
    """The layout of a rank's cache: ``block_bytes`` of one block over the layers of its group."""

    block_bytes: int
    groups: tuple[Group, ...]

    def cost(self, length: int, batched: int) -> int:
        """Blocks that one request of ``length`` tokens may need."""
        return sum(group.blocks(length, batched) for group in self.groups)

    def blocks(self, kv_bytes: int) -> int:
        """Blocks that fit ``kv_bytes``."""
        return max(kv_bytes, 0) // self.block_bytes

    def concurrency(self, kv_bytes: int, length: int, batched: int) -> float:
        """Requests of ``length`` tokens at once."""
        return self.blocks(kv_bytes) / self.cost(length, batched)

    def printed_tokens(self, kv_bytes: int, length: int) -> int:
        """The token count that the engine prints up to 0.20; for several groups it is no capacity."""
        shortest = min(min((group.block for group in self.groups if group.block), default=BLOCK), max(length, 1))
        return self.blocks(kv_bytes) // sum(group.count for group in self.groups) * shortest

    def longest(self, kv_bytes: int, batched: int, most: int = 1 << 27) -> int:
        """Tokens of the longest single request, ``most`` where it costs the same whatever its length."""
        have, low = self.blocks(kv_bytes), 0
        whole = [have // group.count * group.block for group in self.groups if group.block and not group.window]
        high = min([most, *whole])
        if len(self.groups) == 1 and whole:
            return high
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.cost(middle, batched) <= have else (low, middle - 1)
        return low

    def bytes_for(self, requests: int, length: int, batched: int) -> int:
        """Bytes that ``requests`` of ``length`` tokens take."""
        return requests * self.cost(length, batched) * self.block_bytes


@lru_cache(maxsize=512)
def pool_of(caches: tuple[LayerCache, ...], grouped: bool = True) -> Pool:
    """The pool of these layers; not ``grouped``: every attention layer keeps every token (vLLM before 0.9)."""
    attention = [cache for cache in caches if cache.token]
    kinds = _kinds(caches) if grouped else [(sum(cache.layers for cache in attention), attention[0], False)]
    if not attention:
        states = sum(cache.layers * cache.state for cache in caches)
        return Pool(max(states, 1), (Group(1, 0),))
    page = _page(attention, caches)
    size = _group_size([layers for layers, _, _ in kinds])
    groups = tuple(_group(layers, cache, state, size, page) for layers, cache, state in kinds)
    return Pool(page * size, groups)


def _kinds(caches: tuple[LayerCache, ...]) -> list[tuple[int, LayerCache, bool]]:
    """Layers of each kind; what attends and recurs at once is in two."""
    found = [(cache.layers, cache, False) for cache in caches if cache.token]
    return found + [(cache.layers, cache, True) for cache in caches if cache.state]


def _group_size(counts: list[int]) -> int:
    return max(counts) if max(counts) < NEARLY_EQUAL * min(counts) else min(counts)


def _page(attention: list[LayerCache], caches: tuple[LayerCache, ...]) -> int:
    """Bytes of a block in one layer: 16 tokens of the widest, or as many as cover a state."""
    widest = max(cache.token for cache in attention)
    states = max((cache.state for cache in caches), default=0)
    tokens = max(BLOCK * -(-states // (widest * BLOCK)), BLOCK)
    return tokens * widest


def _group(layers: int, cache: LayerCache, state: bool, size: int, page: int) -> Group:
    count = -(-layers // size)
    return Group(count, 0) if state else Group(count, page // cache.token, cache.window)
