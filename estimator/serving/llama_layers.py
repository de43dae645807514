"""Which bytes of a GGUF file lie on which card: whole layers from the last one back, experts apart where they stay.

llama.cpp offloads the last ``-ngl`` layers, counting the output as one more, and deals them over the cards in order;
the token embedding stays in host memory (llama-model.cpp, load_tensors).
"""

from functools import lru_cache
from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.catalogue.gguf import Stored, stored_layers, stored_tensors
from estimator.inventory import inventory
from estimator.weights import ALIGNMENT


class LayerBytes(NamedTuple):
    """Bytes of one layer: experts apart, for they may stay in host memory."""

    rest: int
    experts: int

    @property
    def total(self) -> int:
        """Both."""
        return self.rest + self.experts


class FileBytes(NamedTuple):
    """A file cut up: each layer, the output, and what never lies on a card."""

    layers: tuple[LayerBytes, ...]
    output: int
    host: int
    largest_expert: int


def _aligned(tensor: Stored) -> int:
    return -(-tensor.bytes // ALIGNMENT) * ALIGNMENT * tensor.times


@lru_cache(maxsize=128)
def file_bytes(arch: Architecture, file_type: str) -> FileBytes:
    """The bytes of a model in one GGUF file type."""
    found = inventory(arch)
    ends = set(found.stem + found.top)
    outside = [tensor for tensor in stored_tensors(arch, found, file_type) if tensor.weight in ends]
    layers = stored_layers(arch, found, file_type)
    experts = [tensor.bytes for layer in layers for tensor in layer if tensor.weight.role == "expert"]
    return FileBytes(
        layers=tuple(LayerBytes(_sum(layer, False), _sum(layer, True)) for layer in layers),
        output=sum(_aligned(tensor) for tensor in outside if tensor.on_card),
        host=sum(_aligned(tensor) for tensor in outside if not tensor.on_card),
        largest_expert=max(experts, default=0),
    )


def _sum(layer: tuple[Stored, ...], experts: bool) -> int:
    return sum(_aligned(tensor) for tensor in layer if (tensor.weight.role == "expert") == experts)


def on_cards(layers: int, offloaded: int) -> range:
    """The layers that lie on cards; ``offloaded`` beyond them brings the output."""
    return range(max(layers - offloaded, 0), layers)


def dealt(count: int, shares: tuple[float, ...]) -> list[int]:
    """The card of each of ``count`` layers, in proportion to ``shares``."""
    total, bounds = sum(shares), []
    for number in range(len(shares)):
        bounds.append(sum(shares[: number + 1]) / total)
    return [
        next((card for card, bound in enumerate(bounds) if index / count < bound), len(shares) - 1)
        for index in range(count)
    ]
