"""Bytes of a model's weights on the card, tensor by tensor, each a multiple of 512 bytes.

What is counted is what PyTorch holds between steps: parameters, the tables of quantised ones, the buffers that the
model classes register (transformers 5.24), and adapters. Base for every estimate; equal to a traced model's weights.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from estimator.architecture import UNPACKED, Architecture, Inventory, Weight
from estimator.buffers import buffers
from estimator.catalogue.formats import WeightFormat, weight_format
from estimator.catalogue.gguf import stored_tensors
from estimator.step.model import half_end
from estimator.step.program import rounded
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF
from estimator.trainables import Trainable, trainables

FOUR_BIT = "bitsandbytes-4bit"
"""The scheme whose linears cast their bias to the compute type when first used (bitsandbytes ``Linear4bit``)."""

ALIGNMENT = 128
"""llama.cpp's tensors start at multiples of this in their one buffer."""


class Part(NamedTuple):
    """A share of the weights, named in both languages, with its reason. ``item`` as in the contract.

    ``elements`` are the parameters by how each is stored: ``2 B`` or the name of a packed type.
    """

    label_en: str
    label_zh: str
    bytes: int
    why: str
    why_zh: str
    elements: tuple[tuple[str, int], ...] = ()
    item: str = "weights"


LABELS = {
    "linears": ("linear layers", "线性层"),
    "experts": ("experts", "专家层"),
    "embeddings": ("embeddings and head", "词嵌入与输出层"),
    "norms": ("norms and biases", "归一化与偏置"),
    "buffers": ("buffers", "缓冲区"),
    "adapter": ("adapter", "适配器"),
}
BUFFERS = ("position tables and masks", "位置表与掩码")
GROUP_OF = {"linear": "linears", "conv": "linears", "expert": "experts", "embedding": "embeddings"}


class Weights(NamedTuple):
    """Weights on the card. ``parameters`` are the base model's; ``trainable_tensors`` are (numel, itemsize, count)."""

    bytes: int
    parameters: int
    parts: tuple[Part, ...]
    trainable_tensors: tuple[tuple[int, int, int], ...]

    @property
    def trainable(self) -> int:
        """Trainable parameters."""
        return sum(numel * count for numel, _, count in self.trainable_tensors)

    @property
    def base(self) -> int:
        """Bytes without the adapter."""
        return sum(part.bytes for part in self.parts if part.item == "weights")


def weights(
    arch: Architecture, inventory: Inventory, regime: Regime, adapters: Iterable[Trainable] | None = None
) -> Weights:
    """The weights of a model as loaded (and adapted) for ``regime``; ``adapters`` where only a piece of them is."""
    tally = _Tally(arch, regime)
    if tally.format is not None and tally.format.scheme == "gguf":
        tally.gguf(inventory, tally.format.name)
    else:
        for weight, times in _all(inventory):
            tally.base(weight, times)
        tally.buffers()
    if regime.adapter is not None:
        if adapters is None:
            adapting = regime._replace(training=True, trainable="none")
            adapters = (tensor for tensor in trainables(inventory, adapting) if tensor.adapter)
        tally.adapter(adapters)
    return tally.result(inventory)


def _all(inventory: Inventory) -> Iterator[tuple[Weight, int]]:
    """Every tensor with how many times it occurs."""
    for weight in inventory.stem + inventory.top:
        yield weight, 1
    for index, times in Counter(inventory.layers).items():
        for weight in inventory.kinds[index].weights:
            yield weight, times


class _Tally:
    """Adds up bytes and elements by group."""

    def __init__(self, arch: Architecture, regime: Regime) -> None:
        self.arch = arch
        self.regime = regime
        self.format = _format(regime.quantised)
        self.size: Counter[str] = Counter()
        self.elements: Counter[tuple[str, str]] = Counter()

    def base(self, weight: Weight, times: int) -> None:
        """A tensor of the base model, packed when the format packs it."""
        group = "embeddings" if weight.part == "head" else GROUP_OF.get(weight.role, "norms")
        group = "experts" if weight.part.startswith("experts.") else group
        if self._packed(weight):
            assert self.format is not None
            size = sum(map(rounded, self.format.blocks(weight.shape, weight.part == "head")))
            self._count(group, self.format.name, weight.numel, size, times)
        else:
            itemsize = self.itemsize(weight)
            self._count(group, f"{itemsize} B", weight.numel, rounded(weight.numel * itemsize), times)

    def _packed(self, weight: Weight) -> bool:
        """Whether the format packs a tensor; lightning's plugin takes the place of every linear, the head's too."""
        if self.format is None:
            return False
        head = "litgpt" in self.regime.quirks and weight.part == "head" and len(weight.shape) == 2
        return head or self.format.covers(weight, self.arch.experts is not None)

    def itemsize(self, weight: Weight) -> int:
        """Bytes per element of a tensor that stays unpacked."""
        if weight.role == "buffer" or weight.full or (weight.part == UNPACKED and self.regime.fp16):
            return FULL
        packed = self.format is not None and self.format.scheme == FOUR_BIT
        if weight.role == "bias" and weight.part != "head" and packed:
            return HALF
        if self.regime.kbit and not half_end(weight, self.regime):
            return FULL
        return self.regime.itemsize

    def gguf(self, inventory: Inventory, name: str) -> None:
        """A GGUF file's tensors as far as they lie on the card."""
        for tensor in stored_tensors(self.arch, inventory, name):
            if tensor.on_card:
                weight = tensor.weight
                group = "embeddings" if weight.part in ("embedding", "head") else GROUP_OF.get(weight.role, "norms")
                kind = f"{FULL} B" if tensor.type == "F32" else tensor.type
                self._count(group, kind, weight.numel, -(-tensor.bytes // ALIGNMENT) * ALIGNMENT, tensor.times)

    def adapter(self, tensors: Iterable[Trainable]) -> None:
        """The adapter's matrices (and DoRA's magnitudes)."""
        for tensor in tensors:
            size = rounded(tensor.numel * tensor.itemsize)
            self._count("adapter", f"{tensor.itemsize} B", tensor.numel, size, tensor.times)

    def buffers(self) -> None:
        """What the model classes keep beside their parameters."""
        cached = "cached-rotary" in self.regime.quirks
        for _name, size, times in buffers(self.arch, self.regime.itemsize, cached):
            self._count("buffers", "", 0, rounded(size), times)

    def _count(self, group: str, kind: str, numel: int, size: int, times: int) -> None:
        self.size[group] += size * times
        self.elements[group, kind] += numel * times

    def result(self, inventory: Inventory) -> Weights:
        """Everything added up."""
        parts = tuple(self._part(group) for group in LABELS if self.size[group])
        tensors = tuple((tensor.numel, tensor.itemsize, tensor.times) for tensor in trainables(inventory, self.regime))
        return Weights(sum(part.bytes for part in parts), inventory.numel, parts, tensors)

    def _part(self, group: str) -> Part:
        english, chinese = LABELS[group]
        counted = tuple((kind, count) for (name, kind), count in self.elements.items() if name == group and count)
        why = " + ".join(self._why(kind, count) for kind, count in counted) or BUFFERS[0]
        why_zh = " + ".join(self._why_zh(kind, count) for kind, count in counted) or BUFFERS[1]
        item = "adapter" if group == "adapter" else "weights"
        return Part(english, chinese, self.size[group], why, why_zh, counted, item)

    def _why(self, kind: str, count: int) -> str:
        figures = self.format.figures if self.format is not None and kind == self.format.name else ""
        return stored_as(kind, count) + (f": {figures}" if figures else "")

    def _why_zh(self, kind: str, count: int) -> str:
        figures = self.format.figures_zh if self.format is not None and kind == self.format.name else ""
        return stored_as_zh(kind, count, figures)


def _format(name: str | None) -> WeightFormat | None:
    """The packed format of this name, None for plain types."""
    found = weight_format(name) if name else None
    return None if found is None or found.scheme == "plain" else found


def stored_as(kind: str, count: int) -> str:
    """How many parameters are stored in which type, in figures."""
    return f"{count:,} x {kind}" if kind.endswith(" B") else f"{count:,} in {kind}"


def stored_as_zh(kind: str, count: int, figures: str = "") -> str:
    """The same for a Chinese sentence."""
    if kind.endswith(" B"):
        return f"{count:,} x {kind.removesuffix(' B')} 字节"
    return f"{count:,}（{kind}：{figures}）" if figures else f"{count:,}（{kind}）"
