"""What a card holds while a model is loaded, where that is more than the loaded weights.

transformers 5 brings every tensor to the card in its final type, one by one. Two ways of loading need more:
bitsandbytes packs a linear on the card, so its 16-bit form is there for a moment; and a model loaded in fp32 and cast
afterwards holds fp32 weights and the half-precision copy of one tensor.
"""

from collections.abc import Iterator

from estimator.architecture import Inventory, Weight
from estimator.step.program import rounded
from estimator.step.quantised import BITSANDBYTES
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF
from estimator.weights import Weights


def loading_bytes(parts: Inventory, regime: Regime, held: Weights) -> int:
    """The largest sum while loading, in bytes; adapters come later."""
    if regime.quantised in BITSANDBYTES:  # packed on the card, tensor by tensor
        return held.base + max((rounded(weight.numel * HALF) for weight in _linears(parts)), default=0)
    if regime.load_itemsize > regime.itemsize and regime.quantised is None:
        sizes = [rounded(weight.numel * FULL) for weight in _all(parts)]
        return sum(sizes) + max(sizes) * regime.itemsize // FULL
    return held.base


def _all(parts: Inventory) -> Iterator[Weight]:
    yield from parts.stem + parts.top
    for kind in parts.layers:
        yield from parts.kinds[kind].weights


def _linears(parts: Inventory) -> Iterator[Weight]:
    return (weight for kind in parts.kinds for weight in kind.weights if weight.role == "linear")
