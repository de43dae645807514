"""GGUF weights as llama.cpp's quantiser mixes them: the type of every tensor, and what lies on the card.

Facts from llama.cpp src/llama-quant.cpp (``llama_tensor_get_type``) and gguf-py's GGML_QUANT_SIZES. Matrices take
the file type's base type or a better one by place; vectors, routers and position tables stay F32. The token
embedding stays in host memory; a tied table is there and, as the output layer, on the card.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from estimator.architecture import Architecture, Inventory, Weight
from estimator.gguf_rules import PLACES, Place

BLOCKS: dict[str, tuple[int, int]] = {
    "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22),
    "Q5_1": (32, 24), "Q8_0": (32, 34), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144),
    "Q5_K": (256, 176), "Q6_K": (256, 210), "IQ1_S": (256, 50), "IQ1_M": (256, 56), "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74), "IQ2_S": (256, 82), "IQ3_XXS": (256, 98), "IQ3_S": (256, 110), "IQ4_XS": (256, 136),
    "IQ4_NL": (32, 18), "TQ1_0": (256, 54), "TQ2_0": (256, 66), "MXFP4": (32, 17), "NVFP4": (64, 36),
}  # fmt: skip
"""Elements and bytes of one block of a tensor type."""

FILE_TYPES: dict[str, str] = {
    **{
        name: name
        for name in [
            "F32",
            "F16",
            "BF16",
            "Q4_0",
            "Q4_1",
            "Q5_0",
            "Q5_1",
            "Q8_0",
            "Q6_K",
            "TQ1_0",
            "TQ2_0",
            "IQ1_S",
            "IQ1_M",
            "IQ2_XXS",
        ]
    },
    **{name: name for name in ["IQ2_XS", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "Q2_K"]},
    "Q2_K_S": "Q2_K",
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "IQ2_S": "IQ2_XS",
    "IQ2_M": "IQ2_S",
    "IQ3_XS": "IQ3_S",
    "IQ3_M": "IQ3_S",
    "Q3_K": "Q3_K",
    "Q4_K": "Q4_K",
    "Q5_K": "Q5_K",
    "MXFP4_MOE": "MXFP4",
    "MXFP4": "MXFP4",
    "NVFP4": "NVFP4",
}
"""Base tensor type of a file type."""
SAME_AS = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE"}

FALLBACK = {
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
    "TQ1_0": "Q4_0",
    "TQ2_0": "Q4_0",
    **dict.fromkeys(
        ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "Q2_K", "Q3_K", "IQ4_XS"], "IQ4_NL"
    ),
}
"""Type of a matrix whose rows are no multiple of the block."""

LOW = frozenset(["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ1_S", "IQ1_M"])
EMBEDDING = {
    "IQ2_XXS": "Q2_K", "IQ2_XS": "Q2_K", "IQ1_S": "Q2_K", "IQ1_M": "Q2_K", "IQ2_S": "IQ3_S", "IQ2_M": "IQ3_S",
    "IQ3_XXS": "IQ3_S", "TQ1_0": "Q4_K", "TQ2_0": "Q4_K",
}  # fmt: skip

ALIGNMENT = 128
"""Tensors of one CUDA buffer start at multiples of this."""


def is_gguf(name: str) -> bool:
    """Whether a weight format is a GGUF file type (``Q4_K_M``, ``F16``; upper case, unlike ``nvfp4``)."""
    return name in FILE_TYPES


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of the file: group in the breakdown, type, elements, bytes, and whether it lies on the card."""

    group: str
    type: str
    numel: int
    bytes: int
    on_card: bool = True


def stored(arch: Architecture, inventory: Inventory, name: str) -> Iterator[Stored]:
    """Every tensor of the file, with the output layer of a tied model a second time."""
    name = SAME_AS.get(name, name)
    head = next((weight for weight in inventory.top if weight.part == "head"), None)
    embedding = inventory.stem[0]
    base = FILE_TYPES[name]
    output = _output_type(arch, name, (head or embedding).shape[1])
    table = output if head is None else _fitting(EMBEDDING.get(name, base), embedding.shape[1])
    yield _stored("embeddings", table, embedding, on_card=False)
    yield _stored("embeddings", output, head or embedding)
    for weight in inventory.stem[1:] + inventory.top:
        if weight is not head:
            yield _stored("norms", _elsewhere(weight, base), weight)
    yield from _layers(arch, inventory, name)


def _layers(arch: Architecture, inventory: Inventory, name: str) -> Iterator[Stored]:
    seen: Counter[str] = Counter()
    for index, kind in enumerate(inventory.layers):
        for weight in inventory.kinds[kind].weights:
            place = Place.of(arch, weight.part, index, seen["v_proj"])
            seen[weight.part] += 1
            group = "experts" if weight.role == "expert" else "linears" if _is_matrix(weight) else "norms"
            yield _stored(group, _type(name, weight, place), weight)


def _type(name: str, weight: Weight, place: Place) -> str:
    if not _is_matrix(weight):
        return "F32"
    if name == "MXFP4_MOE":
        return "MXFP4" if weight.role == "expert" else _fitting("Q8_0", weight.shape[-1])
    rule = PLACES.get(place.part)
    better = rule(name, place) if rule is not None else None
    return _fitting(better or FILE_TYPES[name], weight.shape[-1])


def _is_matrix(weight: Weight) -> bool:
    return len(weight.shape) > 1 and weight.role in ("linear", "expert") and weight.part != "router"


def _elsewhere(weight: Weight, base: str) -> str:
    return _fitting(base, weight.shape[-1]) if _is_matrix(weight) else "F32"


def _output_type(arch: Architecture, name: str, width: int) -> str:
    base = FILE_TYPES[name]
    if base in ("F32", "F16", "BF16"):
        return base
    if name == "MXFP4_MOE" or arch.model_type == "falcon" or width % BLOCKS[base][0]:
        return "Q8_0"
    if name in LOW:
        return "Q5_K"
    return base if base == "Q8_0" else "Q6_K"


def _fitting(kind: str, width: int) -> str:
    """The type itself, or what the quantiser falls back to when rows are no multiple of its block."""
    while width % BLOCKS[kind][0]:
        kind = FALLBACK.get(kind, "F16")
    return kind


def _stored(group: str, kind: str, weight: Weight, on_card: bool = True) -> Stored:
    elements, size = BLOCKS[kind]
    total = weight.numel // elements * size
    return Stored(group, kind, weight.numel, -(-total // ALIGNMENT) * ALIGNMENT, on_card)
