"""GGUF files tensor by tensor: which type llama.cpp's quantiser gives each, and the bytes that makes.

``gguf_mixes.csv`` holds the quantiser's rules (llama.cpp src/llama-quant.cpp, llama_tensor_get_type, as shipped in
llama-cpp-python 0.3.36), first match first, IQ3_XXS as made with an importance matrix; ``gguf_blocks.csv`` the block
sizes (gguf-py constants, GGML_QUANT_SIZES) and the type taken when a row does not divide into blocks. Uploads with
their own recipes cannot be derived from the type in their name.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod

from estimator.architecture import Architecture, Weight
from estimator.datafiles import read_text
from estimator.inventory import inventory

TENSORS = {
    "embedding": "token_embd",
    "head": "output",
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "qkv_proj": "attn_qkv",
    "o_proj": "attn_output",
    "gate_proj": "ffn_in",
    "up_proj": "ffn_in",
    "gate_up_proj": "ffn_in",
    "down_proj": "ffn_down",
}
"""Our parts and the names the quantiser's rules use; other matrices take the file's base type."""

KEPT_F32 = ("router", "shared_gate")
"""Matrices that the quantiser leaves alone (ffn_gate_inp)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A tensor type: ``weights`` share ``bytes``; rows that do not divide into blocks take ``fallback``."""

    weights: int
    bytes: int
    fallback: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as the file holds it; ``layer`` is None for the stem and the top."""

    weight: Weight
    layer: int | None
    type: str
    bytes: int


@cache
def blocks() -> dict[str, Block]:
    """Every tensor type of GGUF."""
    found = csv.DictReader(read_text("gguf_blocks.csv").splitlines())
    return {
        row["type"]: Block(int(row["weights_per_block"]), int(row["bytes_per_block"]), row["fallback"]) for row in found
    }


@cache
def mixes() -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    """File type and tensor to its rules: a condition and the type it gives."""
    found: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for row in csv.DictReader(read_text("gguf_mixes.csv").splitlines()):
        key = (row["file_type"], row["tensor"])
        found[key] = (*found.get(key, ()), (row["when"], row["type"]))
    return found


def file_types() -> tuple[str, ...]:
    """The file types whose mix is known."""
    return tuple(name for name, tensor in mixes() if tensor == "base")


def tensor_bytes(kind: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor in the type ``kind``, or in its fallback where the rows do not divide into blocks."""
    block = blocks()[fitting(kind, shape[-1])]
    return prod(shape) // block.weights * block.bytes


def fitting(kind: str, row: int) -> str:
    """``kind``, or what llama.cpp takes instead for rows of ``row`` weights."""
    while row % blocks()[kind].weights:
        kind = blocks()[kind].fallback or "F16"
    return kind


@lru_cache(maxsize=64)
def file_bytes(arch: Architecture, file_type: str) -> int:
    """Bytes of all tensors of a model stored as ``file_type``; metadata is not counted."""
    return sum(stored.bytes for stored in stored_tensors(arch, file_type))


def bits_per_weight(arch: Architecture, file_type: str) -> float:
    """Bits a parameter over the whole file."""
    return file_bytes(arch, file_type) * 8 / inventory(arch).numel


def stored_tensors(arch: Architecture, file_type: str) -> Iterator[Stored]:
    """Every tensor of the file in its type."""
    found = inventory(arch)
    for weight in found.stem + found.top:
        yield _stored(arch, file_type, weight, None)
    for layer, index in enumerate(found.layers):
        for weight in found.kinds[index].weights:
            yield _stored(arch, file_type, weight, layer)


def _stored(arch: Architecture, file_type: str, weight: Weight, layer: int | None) -> Stored:
    kind = fitting(tensor_type(arch, file_type, weight, layer), weight.shape[-1])
    return Stored(weight, layer, kind, tensor_bytes(kind, weight.shape))


def tensor_type(arch: Architecture, file_type: str, weight: Weight, layer: int | None) -> str:
    """The type that the rules give a tensor: vectors stay F32, matrices follow the file's mix."""
    if len(weight.shape) == 1 and weight.part == "" and weight.name == "unmodelled":
        return _base(file_type)
    if len(weight.shape) == 1 or weight.role in ("norm", "conv", "buffer") or weight.part in KEPT_F32:
        return "F32"
    name = _tensor_name(arch, weight)
    if weight.role == "expert" and (file_type, "experts") in mixes():
        return mixes()[file_type, "experts"][0][1]
    for when, kind in mixes().get((file_type, name), ()):
        if _applies(when, arch, layer or 0):
            return kind
    return _base(file_type)


def _base(file_type: str) -> str:
    return mixes()[file_type, "base"][0][1]


def _tensor_name(arch: Architecture, weight: Weight) -> str:
    part = weight.part.rsplit(".", 1)[-1]
    if part == "embedding" and arch.tied:
        return "output"
    return TENSORS.get(part, "other")


def _applies(when: str, arch: Architecture, layer: int) -> bool:
    layers, experts = arch.layers, arch.experts.experts if arch.experts else 0
    return {
        "": True,
        "i<2": layer < 2,
        "i<4": layer < 4,
        "i<n/8": layer < layers // 8,
        "i<n/16": layer < layers // 16,
        "middle": layers // 8 <= layer < 7 * layers // 8,
        "more": more_bits(layer, layers),
        "gqa>=4": arch.heads >= 4 * max(arch.kv_heads, 1),
        "experts=8": experts == 8,
        "experts>=4": experts >= 4,
        "70b": arch.layers == 80 and arch.heads == 8 * arch.kv_heads,
    }[when]


def more_bits(layer: int, layers: int) -> bool:
    """The first eighth, the last eighth and every third layer between (llama-quant.cpp, use_more_bits)."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
