"""A compiled program says what a walk over every single event says."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from estimator.step.program import Compiler, Dimensions, Segment, composition, row_counts, walk

KINDS = (
    ("1", 1000, "weights", ""),
    ("T", 16, "activations", ""),
    ("T", 1024, "activations", "mlp"),
    ("bss", 2, "activations", ""),
    ("T", 4, "other", ""),
)


@st.composite
def balanced_events(draw: st.DrawFn) -> tuple[int, ...]:
    """Allocations and frees in which nothing is freed twice."""
    events: list[int] = []
    alive: list[int] = []
    for _ in range(draw(st.integers(0, 30))):
        if alive and draw(st.booleans()):
            events.append(~alive.pop(draw(st.integers(0, len(alive) - 1))))
        else:
            kind = draw(st.integers(0, len(KINDS) - 1))
            alive.append(kind)
            events.append(kind)
    return tuple(events)


def by_hand(pieces: Sequence[tuple[tuple[int, ...], int]], at: Dimensions) -> tuple[int, int]:
    counts = row_counts([kind[0] for kind in KINDS], at)
    sizes = [-(-counts[rows] * width // 512) * 512 for rows, width, _, _ in KINDS]
    live = peak = 0
    for events, repeat in pieces:
        for event in events * repeat:
            live += sizes[event] if event >= 0 else -sizes[~event]
            peak = max(peak, live)
    return peak, live


@given(
    pieces=st.lists(st.tuples(balanced_events(), st.integers(1, 4)), min_size=1, max_size=4),
    batch=st.integers(1, 9),
    length=st.integers(2, 5000),
)
def test_walk_equals_every_event(pieces: list[tuple[tuple[int, ...], int]], batch: int, length: int) -> None:
    compiler = Compiler(KINDS)
    segments = tuple(Segment("forward", compiler.stretch(events), repeat) for events, repeat in pieces)
    program = compiler.program(segments)
    at = Dimensions(batch, length)
    walked = walk(program, at)
    peak, end = by_hand(pieces, at)
    blocks = sum(len(events) * repeat for events, repeat in pieces)
    assert walked.end == end
    assert peak - 512 * blocks <= walked.peaks["forward"].live <= peak
    alive = composition(program, walked.peaks["forward"])
    assert sum(walked.size(KINDS[kind]) * count for kind, count in alive.items()) == walked.peaks["forward"].live


def test_row_counts_grow_with_batch_and_length() -> None:
    names = ("T", "bss", "s128", ("min", "Tm", 4096), ("liger", "T", 151936, 896))
    small, large = row_counts(names, Dimensions(1, 100)), row_counts(names, Dimensions(2, 300))
    assert all(large[name] >= small[name] for name in names)
