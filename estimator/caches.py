"""The key/value cache of a traced generation, told in tokens and bytes per token."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.setting import Peak, Setting, program_of
from estimator.step.cache import ITEM
from estimator.step.program import Counts, Dimensions, Moment, Program, composition, row_counts
from estimator.step.regime import Regime

BY_TOKEN = ("T", "K", "K0", "W", "W0", "S")
"""Row counts of keys and values; the others are states and counters."""
WINDOWED = ("W", "W0")


class Held(NamedTuple):
    """``tokens`` of all sequences with ``width`` bytes each, in layers with or without a window."""

    tokens: int
    width: int
    windowed: bool

    @property
    def bytes(self) -> int:
        """All of it, blocks not rounded."""
        return self.tokens * self.width


class CacheContents(NamedTuple):
    """Keys and values, most tokens first, and bytes of states that do not grow."""

    grown: tuple[Held, ...]
    states: int

    @property
    def bytes(self) -> int:
        """Everything cached."""
        return sum(held.bytes for held in self.grown) + self.states

    @property
    def per_token(self) -> int:
        """Bytes that one token takes in all layers."""
        return sum(held.width for held in self.grown)


def contents(program: Program, alive: Mapping[int, int], at: Dimensions) -> CacheContents:
    """What is cached among the storages that are ``alive``."""
    counts = row_counts(program.rows, at)
    widths: dict[tuple[int, bool], int] = {}
    states = 0
    for kind, times in alive.items():
        rows, width, item, _ = program.kinds[kind]
        if item != ITEM:
            continue
        name = rows[1] if isinstance(rows, tuple) and rows[0] in ("first", "last") else rows
        if name in BY_TOKEN:
            key = counts[rows], name in WINDOWED
            widths[key] = widths.get(key, 0) + width * times
        elif name == "b":
            states += counts[rows] * width * times
    grown = tuple(Held(tokens, width, windowed) for (tokens, windowed), width in sorted(widths.items(), reverse=True))
    return CacheContents(grown, states)


def at_the_end(setting: Setting, peak: Peak) -> CacheContents:
    """What is cached when the last token has been generated."""
    kept = _kept(setting.arch, setting.regime, setting.shares)
    return contents(peak.program, kept, setting.at)


@lru_cache(maxsize=512)
def _kept(arch: Architecture, regime: Regime, shares: int) -> dict[int, int]:
    """Storages of the cache when the program ends; they do not depend on batch and length."""
    program = program_of(arch, regime, shares)
    end = Moment(0, len(program.segments), 0, Counts())
    return {kind: times for kind, times in composition(program, end).items() if program.kinds[kind][2] == ITEM}


def told(cache: CacheContents, more: int) -> tuple[str, str]:
    """The cache in figures, in both languages; ``more`` are bytes of copies while it grows."""
    parts, parts_zh = [], []
    for held in cache.grown:
        window = len(cache.grown) > 1 and held.windowed
        parts.append(f"{held.tokens:,} tokens x {held.width:,} B{' (sliding window)' if window else ''}")
        parts_zh.append(f"{held.tokens:,} 个 token x {held.width:,} 字节{'（滑动窗口）' if window else ''}")
    text = [f"{' + '.join(parts)} of keys and values"] if parts else []
    text_zh = [f"{' + '.join(parts_zh)}的键和值"] if parts else []
    if cache.states:
        text.append(f"{cache.states:,} B of recurrent states")
        text_zh.append(f"循环状态 {cache.states:,} 字节")
    if more > 0:
        text.append(f"{more:,} B of one layer's while they grow")
        text_zh.append(f"一层增长时的旧副本 {more:,} 字节")
    return ", ".join(text), "，".join(text_zh)
