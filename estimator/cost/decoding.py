"""How fast a model answers: every generated token reads the weights once, and each request its own cache.

Bound by memory bandwidth (bytes read per step) or by compute (2 operations per weight and request).
"""

from dataclasses import dataclass

from estimator.cost.speed import Accelerator

BANDWIDTH_SHARE = (0.5, 0.7, 0.85)
"""Low, expected and high share of the nominal bandwidth that decoding kernels reach (assumption)."""
COMPUTE_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Decoding:
    """Bytes of the weights a token passes and of one request's cache, per card; parameters over all cards."""

    weights_bytes: float
    kv_bytes: float
    parameters: float
    requests: int = 1
    gpu_count: int = 1


def tokens_per_second(what: Decoding, card: Accelerator) -> tuple[float, float, float] | None:
    """Generated tokens per second over all requests: low, expected, high; None where the bandwidth is not known."""
    if not card.bandwidth_gbs:
        return None
    read = what.weights_bytes + what.kv_bytes * what.requests
    low, expected, high = (
        min(what.requests * card.bandwidth_gbs * 1e9 * share / read, _compute_bound(what, card))
        for share in BANDWIDTH_SHARE
    )
    return low, expected, high


def _compute_bound(what: Decoding, card: Accelerator) -> float:
    if not card.peak_tflops:
        return float("inf")
    return card.peak_tflops * 1e12 * COMPUTE_SHARE * what.gpu_count / (2 * what.parameters)
