"""A traced step as segments, and its evaluation for a batch and a length.

Layers of one class leave the same segment, so a model of any depth is a short list of segments with repeat counts.
Within a segment only the levels that can be highest for some dimensions are kept: a level is a polynomial in the row
counts, and one that is nowhere above another never decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import ge, mul
from typing import Any, NamedTuple

from estimator.step.row_kinds import by_keys, image_rows, lengths, ranks, some, source_rows
from estimator.step.tape import Rows

BLOCK = 512
"""The caching allocator rounds every block to this (PyTorch c10/cuda/CUDACachingAllocator.h, kMinBlockSize)."""

Kind = tuple[Rows, int, str, str]
"""Rows, bytes per row, item of the breakdown, scope in the layer."""


def rounded(size: int) -> int:
    """Bytes of the block that an allocation of ``size`` bytes takes."""
    return -(-size // BLOCK) * BLOCK


class Dimensions(NamedTuple):
    """What a traced program is evaluated for: sequences, tokens per sequence, sliding window.

    Inference: ``length`` is the prompt, ``cached`` the generated tokens in the cache once the last decode step ran.
    Preference stages: ``scored`` tokens of a row enter the loss (0: all but the first). ``image``: tiles of a row,
    patches of a tile, class tokens beside them, features of a row; () without images. ``source``: tokens that an
    encoder reads before a decoder, whose own rows are then ``length`` long; 0 for models of one stack.
    """

    batch: int
    length: int
    cached: int = 0
    window: int = 0
    scored: int = 0
    image: tuple[int, int, int, int] | tuple[()] = ()
    source: int = 0


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
        "C": b * min(at.scored or s - 1, s - 1),
        "ss": s * s,
        "bss": b * s * s,
        "bss8": b * s * -(-s // 8) * 8,
        "s128": b * -(-s // 128) * 128,
        "s32": b * -(-s // 32) * 32,
        "K": b * total,
        "W": b * window,
        "bsK": b * s * total,
        "bsK8": b * s * -(-total // 8) * 8,
        "sK": s * total,
        "K0": b * (total - 1),
        "W0": b * (min(total - 1, at.window) if at.window else total - 1),
        "bsW": b * s * window,
        "sW": s * window,
        "bsW8": b * s * -(-window // 8) * 8,
    }
    if at.image:
        known |= image_rows(b, *at.image)
    if at.source:
        known |= source_rows(b, s, total, at.source)
    for kind in kinds:
        if isinstance(kind, tuple) and kind[0] not in STAGES and kind not in known:
            known[kind] = _special(kind, known)
    for stage in STAGES:
        inner = [kind[1] for kind in kinds if kind[0] == stage]
        if inner:
            counts = row_counts(inner, _at_stage(stage, at))
            known.update({(stage, rows): counts[rows] for rows in inner})
    return known


STAGES = ("first", "last")
"""Decode steps that a program evaluates: the first one and the last one."""


def _at_stage(stage: str, at: Dimensions) -> Dimensions:
    """One token per sequence on top of what is cached before the step."""
    cached = at.length if stage == "first" else max(at.length + at.cached - 1, 1)
    return Dimensions(at.batch, 1, cached, at.window, source=at.source)


def _known(kind: Rows, known: dict[Rows, int]) -> int:
    return known[kind] if kind in known or isinstance(kind, str) else _special(kind, known)


def _special(kind: tuple[Any, ...], known: dict[Rows, int]) -> int:
    if kind[0] in ("padded", "chunks", "borders", "longer", "later", "inner", "upto"):
        return known["b"] * lengths(kind[0], known["s"], kind[1])
    if kind[0] in ("share", "half128"):
        return known["b"] * ranks(kind, known["s"])
    if kind[0] in ("aligned", "unaligned"):
        return known[kind[1]] if (known["s"] % 8 == 0) == (kind[0] == "aligned") else 0
    if kind[0] in ("filled", "odd", "whole", "to fill"):
        return by_keys(kind, known)
    if kind[0] in ("min", "dealt", "beyond", "one more"):
        return some(kind, _known(kind[1], known), known["b"])
    if kind[0] == "several":  # of the first half of the rows, where that is more than one
        return known[kind[1]] // 2 if known["b"] > 3 else 0
    if kind[0] in ("half", "row"):
        return known[kind[1]] // (2 if kind[0] == "half" else known["b"])
    if kind[0] == "liger":
        tokens = known[kind[1]]
        wanted = -(-tokens // -(-kind[2] // kind[3]))
        return min(tokens, 1 << int(wanted - 1).bit_length())
    raise KeyError(kind)


class Counts(NamedTuple):
    """How many storages of which kinds: alive at a level, or left by a segment. ``rows`` are bytes per row count.

    ``whole`` are those of the storages whose rows fill whole blocks, so that their sum is exact for any number of
    rows; ``partial`` are the others, which are rounded one by one, and ``partial_times`` how many of each.
    """

    rows: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    partial: tuple[int, ...] = ()
    partial_times: tuple[int, ...] = ()

    def size(self, values: Sequence[int], rounded_sizes: Sequence[int]) -> int:
        """Bytes, every block rounded, for these row counts and sizes of the partial kinds."""
        whole: int = sum(map(mul, self.whole, values))
        partial: int = sum(map(mul, self.partial_times, map(rounded_sizes.__getitem__, self.partial)))
        return whole + partial


class Stretch(NamedTuple):
    """What one segment leaves (``net``) and its highest levels, relative to its start."""

    net: Counts
    levels: tuple[Counts, ...]


class Segment(NamedTuple):
    """A stretch of the timeline, ``repeat`` times over."""

    phase: str
    stretch: Stretch
    repeat: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A step: allocation kinds and the segments in order; each is itself alone, so that it is found fast in caches.

    ``partial`` lists what must be rounded: place in ``rows`` and bytes per row.
    """

    kinds: tuple[Kind, ...]
    rows: tuple[Rows, ...]
    partial: tuple[tuple[int, int], ...]
    segments: tuple[Segment, ...]


class Compiler:
    """Turns event lists (storage indices, frees as complements) into stretches, alike lists once."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = kinds
        self.rows = tuple({kind[0]: None for kind in kinds})
        number_of = {rows: number for number, rows in enumerate(self.rows)}
        places, widths = [number_of[kind[0]] for kind in kinds], [kind[1] for kind in kinds]
        rounds = [(place, width) if width % BLOCK else None for place, width in zip(places, widths, strict=True)]
        self.partial = {one: number for number, one in enumerate(dict.fromkeys(filter(None, rounds)))}
        self.rounds = [self.partial[one] if one else None for one in rounds]
        # A free, the complement of its kind, indexes from the end: there the same places stand in reverse.
        self.place = places + places[::-1]
        self.change = widths + [-width for width in reversed(widths)]
        self.known: dict[tuple[int, ...], Stretch] = {}
        self.levels: dict[tuple[Counts, ...], tuple[Counts, ...]] = {}

    def stretch(self, events: tuple[int, ...]) -> Stretch:
        """The stretch of an event list."""
        if events not in self.known:
            self.known[events] = self._compile(events)
        return self.known[events]

    def program(self, segments: Iterable[Segment]) -> Program:
        """The program of these segments."""
        return Program(tuple(self.kinds), self.rows, tuple(self.partial), tuple(segments))

    def _compile(self, events: tuple[int, ...]) -> Stretch:
        place, change = self.place, self.change
        live = [0] * len(self.rows)
        counts: dict[int, int] = {}
        tops: dict[tuple[int, ...], dict[int, int]] = {tuple(live): {}}
        rising = False
        for event in events:
            if event >= 0:
                counts[event] = counts.get(event, 0) + 1
                rising = True
            else:
                if rising:
                    _admit(tops, tuple(live), counts)
                    rising = False
                counts[~event] = counts.get(~event, 0) - 1
            live[place[event]] += change[event]
        if rising:
            _admit(tops, tuple(live), counts)
        levels = tuple([self._counts(rows, held) for rows, held in tops.items()])
        return Stretch(self._counts(tuple(live), counts), self.levels.setdefault(levels, levels))

    def _counts(self, rows: tuple[int, ...], counts: dict[int, int]) -> Counts:
        held = {kind: times for kind, times in counts.items() if times}
        whole, partial = [0] * len(self.rows), dict[int, int]()
        for kind, times in held.items():
            number = self.rounds[kind]
            if number is None:
                whole[self.place[kind]] += times * self.change[kind]
            else:
                partial[number] = partial.get(number, 0) + times
        return Counts(rows, tuple(held), tuple(held.values()), tuple(whole), tuple(partial), tuple(partial.values()))


def _admit(tops: dict[tuple[int, ...], dict[int, int]], level: tuple[int, ...], counts: dict[int, int]) -> None:
    """Keep a level unless a known one is nowhere below it; drop those that it is nowhere below."""
    for known in tops:
        if all(map(ge, known, level)):
            return
    for known in [known for known in tops if all(map(ge, level, known))]:
        del tops[known]
    tops[level] = dict(counts)


class Moment(NamedTuple):
    """Where a peak lies: segment, how many whole repeats of it came before, and the level within."""

    live: int
    segment: int
    repeats: int
    level: Counts


class Walk(NamedTuple):
    """An evaluated program: its row counts, the peak of each phase and what is left at the end."""

    counts: dict[Rows, int]
    peaks: dict[str, Moment]
    end: int

    def size(self, kind: Kind) -> int:
        """Bytes of the block of one storage of a kind."""
        return rounded(self.counts[kind[0]] * kind[1])


@lru_cache(maxsize=2048)
def walk(program: Program, at: Dimensions) -> Walk:
    """Live bytes over the whole step, in closed form over repeated segments."""
    counts = row_counts(program.rows, at)
    values = [counts[rows] for rows in program.rows]
    sizes = [-(-values[place] * width // BLOCK) * BLOCK for place, width in program.partial]
    peaks: dict[str, Moment] = {}
    live = 0
    known: dict[int, tuple[int, int, Counts]] = {}
    tops: dict[int, tuple[int, Counts]] = {}
    for number, segment in enumerate(program.segments):
        found = known.get(id(segment.stretch))
        if found is None:
            found = known[id(segment.stretch)] = _evaluate(segment.stretch, values, sizes, tops)
        change, top, level = found
        whole = segment.repeat - 1 if change > 0 else 0
        highest = live + whole * change + top
        best = peaks.get(segment.phase)
        if best is None or highest > best.live:
            peaks[segment.phase] = Moment(highest, number, whole, level)
        live += segment.repeat * change
    return Walk(counts, peaks, live)


OF_THE_MODEL = ("weights", "communication", "gradients")
"""What a forward leaves that belongs to the model and not to its micro-batch: gathered parameters and buffers."""


def left_by(program: Program, at: Dimensions, phases: Sequence[str]) -> int:
    """Bytes of a micro-batch that the segments of these phases leave alive."""
    counts = row_counts(program.rows, at)
    left: dict[int, int] = {}
    for segment in program.segments:
        if segment.phase in phases:
            _add(left, segment.stretch.net, segment.repeat)
    own = ((program.kinds[kind], times) for kind, times in left.items())
    return sum(times * rounded(counts[kind[0]] * kind[1]) for kind, times in own if kind[2] not in OF_THE_MODEL)


def _evaluate(
    stretch: Stretch, values: list[int], sizes: list[int], tops: dict[int, tuple[int, Counts]]
) -> tuple[int, int, Counts]:
    """Bytes that a stretch leaves, its highest level and that level's bytes; ``tops`` remembers those of its levels."""
    found = tops.get(id(stretch.levels))
    if found is None:
        found = tops[id(stretch.levels)] = _top(stretch.levels, values, sizes)
    return stretch.net.size(values, sizes), *found


def _top(levels: tuple[Counts, ...], values: list[int], sizes: list[int]) -> tuple[int, Counts]:
    level = levels[0]
    if len(levels) > 1:
        heights = [sum(map(mul, level.rows, values)) for level in levels]
        level = levels[heights.index(max(heights))]
    return level.size(values, sizes), level


def composition(program: Program, moment: Moment) -> Mapping[int, int]:
    """How many storages of each kind live at a moment."""
    return _composed(program, moment.segment, moment.repeats, moment.level)


@lru_cache(maxsize=1024)
def _composed(program: Program, number: int, repeats: int, level: Counts) -> Mapping[int, int]:
    alive: dict[int, int] = {}
    for segment in program.segments[:number]:
        _add(alive, segment.stretch.net, segment.repeat)
    if number < len(program.segments):
        _add(alive, program.segments[number].stretch.net, repeats)
    _add(alive, level, 1)
    return {kind: times for kind, times in alive.items() if times}


def _add(alive: dict[int, int], counts: Counts, times: int) -> None:
    if times:
        for kind, count in zip(counts.kinds, counts.times, strict=True):
            alive[kind] = alive.get(kind, 0) + times * count
