"""What a card adds around the live tensors: workspaces, allocator segments, context; and whether a run fits."""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from estimator.schema import Fit, Interval, Range

GIB = 1 << 30


@lru_cache(maxsize=1)
def constants() -> dict[str, Any]:
    """Measured constants with their sources (data/card.toml)."""
    return tomllib.loads(files("estimator").joinpath("data/card.toml").read_text(encoding="utf-8"))


def workspace_bytes(compute_capability: str | None, training: bool) -> int:
    """cuBLAS workspaces inside ``allocated``: one per thread that multiplies (forward, and backward when training)."""
    table = constants()["workspace"]
    major = (compute_capability or "8.0").split(".")[0]
    each = table["hopper_bytes"] if major in table["hopper_majors"] else table["default_bytes"]
    return int(each) * (2 if training else 1)


def interval(allocated: int, spread: str) -> Interval:
    """Where the true allocated peak lies in 90 % of the cases."""
    low, high = constants()["allocated"][spread]["relative"]
    return Interval.model_construct(low=int(allocated * (1 + low)), high=int(allocated * (1 + high)), coverage=0.9)


def reserved(allocated: int, regime: str, bounds: Interval) -> Range:
    """Segments that the caching allocator holds for these tensors."""
    low, expected, high = constants()["reserved"][regime]["relative"]
    return Range.model_construct(
        low=int(bounds.low * (1 + low)), expected=int(allocated * (1 + expected)), high=int(bounds.high * (1 + high))
    )


def device(held: Range) -> Range:
    """What nvidia-smi shows: reserved, the CUDA context and loaded kernels."""
    low, expected, high = (int(gib * GIB) for gib in constants()["context"]["gib"])
    return Range.model_construct(low=held.low + low, expected=held.expected + expected, high=held.high + high)


def most_live_bytes(usable: int, workspace: int, spread: str, regime: str) -> int:
    """Live bytes up to which the high end of the device range stays within ``usable``."""
    relative = (1 + constants()["allocated"][spread]["relative"][1]) * (1 + constants()["reserved"][regime]["relative"][2])
    return int((usable - constants()["context"]["gib"][2] * GIB) / relative) - workspace - 2


def fit(on_card: Range, usable: int) -> Fit:
    """The verdict against the card's real memory; confidence from where ``usable`` falls in the range."""
    if on_card.high <= usable:
        verdict = "fits"
    elif on_card.expected <= usable:
        verdict = "tight"
    else:
        verdict = "does_not_fit"
    return Fit.model_construct(
        verdict=verdict, usable=usable, margin=usable - on_card.expected, confidence=_confidence(on_card, usable)
    )


def _confidence(on_card: Range, usable: int) -> float:
    """Probability that the run fits, read off a straight line through the range (5 %, 50 %, 95 %)."""
    if usable >= on_card.expected:
        span = max(on_card.high - on_card.expected, 1)
        return round(min(0.5 + 0.45 * (usable - on_card.expected) / span, 0.99), 3)
    span = max(on_card.expected - on_card.low, 1)
    return round(max(0.5 - 0.45 * (on_card.expected - usable) / span, 0.01), 3)
