"""A traced step as segments of allocations and frees, and its evaluation for a batch and a length.

Layers of one class leave the same segment, so a model of any depth is a short list of segments with repeat counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from estimator.step.tape import Rows

BLOCK = 512
"""The caching allocator rounds every block to this (PyTorch c10/cuda/CUDACachingAllocator.h, kMinBlockSize)."""


def rounded(size: int) -> int:
    """Bytes of the block that an allocation of ``size`` bytes takes."""
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What a traced program is evaluated for: sequences, tokens per sequence, tokens already cached, window."""

    batch: int
    length: int
    cached: int = 0
    window: int = 0


def row_counts(kinds: Sequence[Rows], at: Dimensions) -> dict[Rows, int]:
    """The value of every row count in ``kinds``."""
    b, s = at.batch, at.length
    total = s + at.cached
    window = min(total, at.window) if at.window else total
    known: dict[Rows, int] = {
        "1": 1,
        "b": b,
        "s": s,
        "T": b * s,
        "T1": b * (s + 1),
        "Tm": b * (s - 1),
        "ss": s * s,
        "bss": b * s * s,
        "bss8": b * s * -(-s // 8) * 8,
        "s128": b * -(-s // 128) * 128,
        "s32": b * -(-s // 32) * 32,
        "K": b * total,
        "W": b * window,
        "bsK": b * s * total,
        "sK": s * total,
    }
    for kind in kinds:
        if kind not in known:
            known[kind] = _special(kind, known)
    return known


def _special(kind: Rows, known: dict[Rows, int]) -> int:
    if kind[0] in ("aligned", "unaligned"):
        return known[kind[1]] if (known["s"] % 8 == 0) == (kind[0] == "aligned") else 0
    if kind[0] == "min":
        return min(known[kind[1]], kind[2])
    if kind[0] == "liger":
        tokens = known[kind[1]]
        wanted = -(-tokens // -(-kind[2] // kind[3]))
        return min(tokens, 1 << (wanted - 1).bit_length())
    raise KeyError(kind)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the timeline, ``repeat`` times over: storage indices, frees as complements."""

    phase: str
    events: tuple[int, ...]
    repeat: int


@dataclass(frozen=True, slots=True)
class Program:
    """A step: allocation kinds (rows, bytes per row, item, scope) and the segments in order."""

    kinds: tuple[tuple[Rows, int, str, str], ...]
    rows: tuple[Rows, ...]
    segments: tuple[Segment, ...]


@dataclass(slots=True)
class Moment:
    """Where a peak lies: segment, how many whole repeats came before, and events into the segment."""

    live: int
    segment: int
    repeats: int
    events: int


@dataclass(slots=True)
class Walk:
    """An evaluated program: bytes per kind, the peak by phase and what is left at the end."""

    sizes: list[int]
    peaks: dict[str, Moment]
    end: int


def walk(program: Program, at: Dimensions) -> Walk:
    """Live bytes over the whole step, in closed form over repeated segments."""
    counts = row_counts(program.rows, at)
    sizes = [-(-counts[rows] * width // BLOCK) * BLOCK for rows, width, _, _ in program.kinds]
    signed = [*sizes, *[-size for size in reversed(sizes)]]
    look = signed.__getitem__
    peaks: dict[str, Moment] = {}
    live = 0
    seen: dict[int, tuple[int, int, list[int]]] = {}
    for number, segment in enumerate(program.segments):
        cached = seen.get(id(segment.events))
        if cached is None:
            levels = list(accumulate(map(look, segment.events), initial=0))
            cached = seen[id(segment.events)] = (levels[-1], max(levels), levels)
        change, top, levels = cached
        whole = segment.repeat - 1 if change > 0 else 0
        highest = live + whole * change + top
        best = peaks.get(segment.phase)
        if best is None or highest > best.live:
            peaks[segment.phase] = Moment(highest, number, whole, levels.index(top))
        live += segment.repeat * change
    return Walk(sizes, peaks, live)


def composition(program: Program, walked: Walk, moment: Moment) -> dict[tuple[str, str, int], tuple[int, int]]:
    """What lives at a moment: (item, scope, kind) to (how many, bytes)."""
    counts: dict[int, int] = {}
    for number, segment in enumerate(program.segments[: moment.segment + 1]):
        last = number == moment.segment
        times = moment.repeats if last else segment.repeat
        if times:
            _count(counts, segment.events, times)
        if last:
            _count(counts, segment.events[: moment.events], 1)
    return {
        (program.kinds[kind][2], program.kinds[kind][3], kind): (count, count * walked.sizes[kind])
        for kind, count in counts.items()
        if count
    }


def _count(counts: dict[int, int], events: Sequence[int], times: int) -> None:
    for event in events:
        kind = event if event >= 0 else ~event
        counts[kind] = counts.get(kind, 0) + (times if event >= 0 else -times)
