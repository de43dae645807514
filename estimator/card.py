"""What a card adds around the live tensors: workspaces, allocator segments, context; and whether a run fits."""

from functools import lru_cache
from typing import Any, NamedTuple

from estimator.datafiles import read_toml
from estimator.schema import Fit, Interval, Range, Verdict

GIB = 1 << 30


@lru_cache(maxsize=1)
def constants() -> dict[str, Any]:
    """Measured constants with their sources (data/card.toml)."""
    return read_toml("card.toml")


def workspace_bytes(compute_capability: str | None, training: bool) -> int:
    """CuBLAS workspaces inside ``allocated``: one per thread that multiplies (forward, and backward when training)."""
    table = constants()["workspace"]
    major = (compute_capability or "8.0").split(".")[0]
    each = table["hopper_bytes"] if major in table["hopper_majors"] else table["default_bytes"]
    return int(each) * (2 if training else 1)


class Sizes(NamedTuple):
    """Bytes: what is there during the whole step, what the step allocates at its peak, and cuBLAS workspaces."""

    static: int
    dynamic: int
    workspace: int

    @property
    def allocated(self) -> int:
        """What PyTorch's allocator counts."""
        return self.static + self.dynamic + self.workspace


class Spread(NamedTuple):
    """Shares of static and dynamic bytes: bounds of the allocated peak, and what the allocator's segments add.

    ``plain``: bytes below and above that grow with neither.
    """

    static: tuple[float, float]
    dynamic: tuple[float, float]
    plain: tuple[int, int]
    reserved: tuple[float, float, float]
    context: tuple[int, int, int]
    """Bytes of the CUDA context and loaded kernels: low, expected, high."""


@lru_cache(maxsize=64)
def spread(sureness: str, regime: str, loading: str = "") -> Spread:
    """The spread of an architecture this well known, run this way; ``loading``: how an old torch loads kernels."""
    table = constants()
    bounds = table["allocated"][sureness]
    shares = tuple(bounds["static"]), tuple(bounds["dynamic"])
    gib = (table["context"][loading] if loading else table["context"])["gib"]
    low, expected, high = (int(size * GIB) for size in gib)
    return Spread(*shares, tuple(bounds["bytes"]), tuple(table["reserved"][regime]), (low, expected, high))


def interval(sizes: Sizes, around: Spread) -> Interval:
    """Where the true allocated peak lies in 90 % of the cases."""
    low, high = _bounds(sizes, around)
    return Interval(low=low, high=high, coverage=0.9)


def _bounds(sizes: Sizes, around: Spread) -> tuple[int, int]:
    allocated, static, dynamic = sizes.allocated, sizes.static, sizes.dynamic
    low = int(allocated + static * around.static[0] + dynamic * around.dynamic[0]) + around.plain[0]
    high = int(allocated + static * around.static[1] + dynamic * around.dynamic[1]) + around.plain[1]
    return max(low, sizes.workspace), high


def reserved(sizes: Sizes, around: Spread) -> Range:
    """Segments that the caching allocator holds for these tensors: never fewer than the tensors themselves."""
    low, expected, high = _reserved(sizes, around)
    return Range(low=low, expected=expected, high=high)


def _reserved(sizes: Sizes, around: Spread) -> tuple[int, int, int]:
    least, most = _bounds(sizes, around)
    low, expected, high = around.reserved
    allocated, dynamic = sizes.allocated, sizes.dynamic
    return max(least + int(low * dynamic), allocated), allocated + int(expected * dynamic), most + int(high * dynamic)


def device(held: Range, around: Spread) -> Range:
    """What nvidia-smi shows: reserved, the CUDA context and loaded kernels."""
    low, expected, high = around.context
    return Range(low=held.low + low, expected=held.expected + expected, high=held.high + high)


def on_device(sizes: Sizes, around: Spread) -> tuple[int, int, int]:
    """Low, expected and high bytes that the card shows, as ``device(reserved(…))`` has them: for searches."""
    held, context = _reserved(sizes, around), around.context
    return held[0] + context[0], held[1] + context[1], held[2] + context[2]


def most_dynamic(usable: int, sizes: Sizes, around: Spread) -> int:
    """Dynamic bytes up to which the high end of the device range stays within ``usable``."""
    left = usable - around.context[2] - sizes.workspace - around.plain[1] - sizes.static * (1 + around.static[1])
    return int(left / (1 + around.dynamic[1] + around.reserved[2])) - 4


def fit(on_card: Range, usable: int) -> Fit:
    """The verdict against the card's real memory; confidence from where ``usable`` falls in the range."""
    verdict = verdict_of(on_card.expected, on_card.high, usable)
    return Fit(
        verdict=verdict, usable=usable, margin=usable - on_card.expected, confidence=_confidence(on_card, usable)
    )


def verdict_of(expected: int, high: int, usable: int) -> Verdict:
    """Whether a run that needs so many bytes fits: surely, perhaps, or not."""
    if high <= usable:
        return "fits"
    return "tight" if expected <= usable else "does_not_fit"


def _confidence(on_card: Range, usable: int) -> float:
    """Probability that the run fits, read off a straight line through the range (5 %, 50 %, 95 %)."""
    if usable >= on_card.expected:
        span = max(on_card.high - on_card.expected, 1)
        return round(min(0.5 + 0.45 * (usable - on_card.expected) / span, 0.99), 3)
    span = max(on_card.expected - on_card.low, 1)
    return round(max(0.5 - 0.45 * (on_card.expected - usable) / span, 0.01), 3)
