"""GGUF files tensor by tensor: the type llama.cpp's quantiser gives each, its bytes, and whether it lies on the card.

``gguf_mixes.csv`` holds the quantiser's rules (llama.cpp src/llama-quant.cpp, llama_tensor_get_type, as shipped in
llama-cpp-python 0.3.36), first match first, IQ3_XXS as made with an importance matrix; ``gguf_tensors.csv`` our parts
in llama.cpp's names, the types that are never quantised and what stays in host memory; ``gguf_blocks.csv`` the block
sizes (gguf-py constants, GGML_QUANT_SIZES) and the type taken when a row does not divide into blocks. Uploads with
their own recipes cannot be derived from the type in their name.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from estimator.architecture import Architecture, Inventory, Weight
from estimator.datafiles import read_text

BASE = "base"
"""In the rules: the type that most matrices of a file take."""

SEVENTY_B = 80
"""Layers of the models that llama.cpp calls 70B."""


class Block(NamedTuple):
    """A tensor type: ``weights`` share ``bytes``; rows that do not divide into blocks take ``fallback``."""

    weights: int
    bytes: int
    fallback: str


class Known(NamedTuple):
    """A part of a model in llama.cpp's terms: name, type if it is never quantised, and where it lies."""

    tensor: str
    type: str
    place: str


class Rule(NamedTuple):
    """The type of a tensor where all conditions hold."""

    when: tuple[str, ...]
    type: str


class Stored(NamedTuple):
    """``times`` tensors alike. The copy of a tied table that serves as output layer is not ``in_file``."""

    weight: Weight
    type: str
    times: int = 1
    on_card: bool = True
    in_file: bool = True

    @property
    def bytes(self) -> int:
        """Bytes of one of them."""
        return tensor_bytes(self.type, self.weight.shape)


class Place(NamedTuple):
    """Where a tensor is: its number among ``total``, and how many of its name came before."""

    number: int
    seen: int
    total: int


PLACES: dict[str, Callable[[Place], bool]] = {
    "i<2": lambda at: at.number < 2,
    "i<4": lambda at: at.number < 4,
    "i<n/8": lambda at: at.number < at.total // 8,
    "i<n/16": lambda at: at.number < at.total // 16,
    "c<n/8": lambda at: at.seen < at.total // 8,
    "middle": lambda at: at.total // 8 <= at.number < 7 * at.total // 8,
    "more": lambda at: more_bits(at.number, at.total),
    "less": lambda at: not more_bits(at.number, at.total),
}
"""Conditions on the place; all others are facts of the model."""


@cache
def blocks() -> dict[str, Block]:
    """Every tensor type of GGUF."""
    rows = csv.DictReader(read_text("gguf_blocks.csv").splitlines())
    return {
        row["type"]: Block(int(row["weights_per_block"]), int(row["bytes_per_block"]), row["fallback"]) for row in rows
    }


@cache
def parts() -> dict[str, Known]:
    """Our parts in llama.cpp's terms; other matrices take the file's base type."""
    rows = csv.DictReader(read_text("gguf_tensors.csv").splitlines())
    return {row["part"]: Known(row["tensor"], row["type"], row["place"]) for row in rows}


@cache
def mixes() -> dict[str, dict[str, tuple[Rule, ...]]]:
    """File type and tensor to its rules, the first that holds decides."""
    found: dict[str, dict[str, tuple[Rule, ...]]] = {}
    for row in csv.DictReader(read_text("gguf_mixes.csv").splitlines()):
        rule = Rule(tuple(row["when"].split()), row["type"])
        for name in found if row["file_types"] == "*" else row["file_types"].split():
            mix = found.setdefault(name, {})
            for tensor in row["tensors"].split():
                mix[tensor] = (*mix.get(tensor, ()), rule)
    return found


def file_types() -> tuple[str, ...]:
    """The file types whose mix is known."""
    return tuple(mixes())


def base_type(file_type: str) -> str:
    """The type that most matrices of a file take."""
    return mixes()[file_type][BASE][0].type


@lru_cache(maxsize=4096)
def tensor_bytes(kind: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor in the type ``kind``, or in its fallback where the rows do not divide into blocks."""
    block = blocks()[fitting(kind, shape[-1])]
    return prod(shape) // block.weights * block.bytes


def fitting(kind: str, row: int) -> str:
    """``kind``, or what llama.cpp takes instead for rows of ``row`` weights."""
    while row % blocks()[kind].weights:
        kind = blocks()[kind].fallback or "F16"
    return kind


def more_bits(layer: int, layers: int) -> bool:
    """The first eighth, the last eighth and every third layer between (llama-quant.cpp, use_more_bits)."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def stored_tensors(arch: Architecture, found: Inventory, file_type: str) -> Iterator[Stored]:
    """Every tensor of the file in its type; a tied table a second time, as the output layer on the card."""
    mix = _Mix(arch, found, file_type)
    for weight in found.stem + found.top:
        kind = mix.type(weight, None)
        on_card = parts()[weight.part].place != "host" if weight.part in parts() else True
        yield Stored(weight, kind, 1, on_card)
        if weight.part == "embedding" and not mix.has_output and arch.kind != "encoder":
            yield Stored(weight, kind, in_file=False)
    yield from mix.layers(found)


@lru_cache(maxsize=128)
def stored_layers(arch: Architecture, found: Inventory, file_type: str) -> tuple[tuple[Stored, ...], ...]:
    """The tensors of each layer, in order."""
    mix = _Mix(arch, found, file_type)
    return tuple(
        tuple(
            Stored(weight, mix.type(weight, layer if mix.depends(weight) else None))
            for weight in found.kinds[index].weights
        )
        for layer, index in enumerate(found.layers)
    )


class _Mix:
    """The rules of a file type as far as a model's own facts decide them."""

    def __init__(self, arch: Architecture, found: Inventory, file_type: str) -> None:
        self.arch, self.base, self.rules = arch, base_type(file_type), mixes()[file_type]
        self.has_output = any(weight.part == "head" and weight.role == "linear" for weight in found.top)
        self.facts = _facts(arch)
        self.mixture = arch.experts is not None and arch.experts.experts > 1
        values = [sum(_tensor(weight) in VALUES for weight in kind.weights) for kind in found.kinds]
        self.values = sum(values[index] for index in found.layers)
        self.seen: Counter[str] = Counter()

    def layers(self, found: Inventory) -> Iterator[Stored]:
        """The tensors of all layers, alike ones together."""
        times = Counter(found.layers)
        placed: dict[int, list[Weight]] = {}
        for index, kind in enumerate(found.kinds):
            placed[index] = [weight for weight in kind.weights if self.depends(weight)]
            for weight in kind.weights:
                if not self.depends(weight):
                    yield Stored(weight, self.type(weight, None), times[index])
        counted: Counter[tuple[Weight, str]] = Counter()
        for layer, index in enumerate(found.layers):
            for weight in placed[index]:
                counted[weight, self.type(weight, layer)] += 1
        for (weight, kind_name), count in counted.items():
            yield Stored(weight, kind_name, count)

    def depends(self, weight: Weight) -> bool:
        """Whether the layer decides the type."""
        return _kept(weight) is None and any(rule.when for rule in self.open(weight))

    def type(self, weight: Weight, layer: int | None) -> str:
        """The type of a tensor: vectors stay F32, matrices follow the file's mix."""
        kind = _kept(weight)
        if kind is None:
            at = self.place(_tensor(weight), layer) if layer is not None else Place(0, 0, 0)
            rules = self.open(weight)
            kind = next((rule.type for rule in rules if all(PLACES[when](at) for when in rule.when)), BASE)
        return fitting(self.base if kind == BASE else kind, weight.shape[-1])

    def place(self, tensor: str, layer: int) -> Place:
        """As the quantiser counts: value projections and dense feed-forwards by number, experts by layer."""
        seen = self.seen[tensor]
        self.seen[tensor] += 1
        if tensor == "attn_v":
            return Place(seen, seen, self.values)
        return Place(layer if self.mixture else seen, seen, self.arch.layers)

    def open(self, weight: Weight) -> tuple[Rule, ...]:
        """The rules that the model's facts leave open, without those facts."""
        if weight.role == "expert" and (experts := _open(self.rules.get("experts", ()), self.facts)):
            return experts
        name = _tensor(weight)
        if weight.part == "embedding" and not self.has_output:
            name = "output"
        facts = self.facts
        if name == "output" and weight.shape[-1] % blocks()[self.base].weights:
            facts |= {"ragged"}
        return _open(self.rules.get(name, ()), facts)


@lru_cache(maxsize=1024)
def _open(rules: tuple[Rule, ...], facts: frozenset[str]) -> tuple[Rule, ...]:
    found = []
    for rule in rules:
        places = tuple(when for when in rule.when if when in PLACES)
        if all(when in facts for when in rule.when if when not in PLACES):
            found.append(Rule(places, rule.type))
            if not places:
                break
    return tuple(found)


VALUES = ("attn_v", "attn_qkv", "attn_kv_b")
"""What the quantiser counts as value projections."""


def _facts(arch: Architecture) -> frozenset[str]:
    experts = arch.experts.experts if arch.experts else 0
    shared = arch.heads // max(arch.kv_heads, 1)
    seventy = arch.layers == SEVENTY_B and (
        arch.model_type == "qwen2" or (arch.model_type == "llama" and arch.heads != arch.kv_heads)
    )
    held = {
        "falcon": arch.model_type == "falcon",
        "gqa>=4": shared >= 4,
        "experts=8": experts == 8,
        "experts>=4": experts >= 4,
        "70b": seventy,
        "mxfp4": arch.model_type == "gpt_oss",
    }
    return frozenset(name for name, holds in held.items() if holds)


def _tensor(weight: Weight) -> str:
    if weight.role == "bias":
        return ""
    known = parts().get(weight.part.rsplit(".", 1)[-1])
    return known.tensor if known else ""


def _kept(weight: Weight) -> str | None:
    """The type of what is never quantised; None for a matrix that follows the mix."""
    if weight.name == "unmodelled":
        return None
    if len(weight.shape) == 1 or weight.role not in ("linear", "expert", "embedding") or not weight.part:
        return "F32"
    known = parts().get(weight.part)
    return known.type or None if known else None
