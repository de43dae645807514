"""How fast a model answers: every generated token reads the weights once, and each request its own cache.

Bound by memory bandwidth (bytes read per step), by compute (2 operations per weight and request), or by the host that
starts the kernels of every layer.
"""

from dataclasses import dataclass
from typing import NamedTuple

from estimator.cost.speed import Accelerator
from estimator.cost.tables import table_of


@dataclass(frozen=True, slots=True)
class Decoding:
    """Bytes of the weights a token passes and of one request's cache, per card; parameters over all cards.

    ``in_turn``: the cards hold layers one after the other, so that their reading adds up. ``eager_layers``: layers that
    are started kernel by kernel (transformers' generate), 0 where CUDA graphs do it.
    """

    weights_bytes: float
    kv_bytes: float
    parameters: float
    requests: int = 1
    gpu_count: int = 1
    in_turn: bool = False
    eager_layers: int = 0


class Step(NamedTuple):
    """Seconds of one step that gives every request a token (low is quick), and what bounds it."""

    low: float
    expected: float
    high: float
    bound: str


def step_of(what: Decoding, card: Accelerator) -> Step | None:
    """The step of decoding on a card; None where its bandwidth is not known."""
    if not card.bandwidth_gbs:
        return None
    table = table_of("decoding")
    turns = what.gpu_count if what.in_turn else 1
    read = (what.weights_bytes + what.kv_bytes * what.requests) * turns / (card.bandwidth_gbs * 1e9)
    shares, floors = table["bandwidth"], table["launch"]
    computed = _computing(what, card, turns)
    spans = [
        (read / shares[better], computed, what.eager_layers * floors[name])
        for name, better in (("low", "high"), ("default", "default"), ("high", "low"))
    ]
    low, expected, high = (max(span) for span in spans)
    bounds = dict(zip(("bandwidth", "compute", "launch"), spans[1], strict=True))
    return Step(low, expected, high, max(bounds, key=bounds.__getitem__))


def weights_read(weights_bytes: float, active: int, total: int, requests: int) -> float:
    """Bytes of weights that a step reads: of a mixture, the more experts the more requests choose their own.

    With a share a of the parameters active, b requests leave (1 - a)^b of them unread if experts are chosen evenly.
    """
    return weights_bytes * (1 - (1 - active / total) ** requests) if active < total else weights_bytes


def _computing(what: Decoding, card: Accelerator, turns: int) -> float:
    if not card.peak_tflops:
        return 0.0
    side_by_side = what.gpu_count / turns
    share: float = table_of("decoding")["compute"]["share"]
    return 2 * what.parameters * what.requests / (card.peak_tflops * 1e12 * share * side_by_side)
