"""The tensors that one matrix becomes under a quantised weight format, as the loaders leave them on the card.

Sources: bitsandbytes 0.50.2 (``functional.quantize_4bit``, ``quantize_blockwise``), GPTQModel and AutoAWQ buffers
(qweight, qzeros, scales, g_idx), hqq/core/quantize.py, transformers 5.24 ``integrations/finegrained_fp8.py`` and
``mxfp4.py``, NVIDIA ModelOpt's NVFP4. Each block is an allocation of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

Blocks = tuple[int, ...]
"""Sizes in bytes of the allocations that hold one matrix."""

CODE_TABLE = 16 * 4
"""bitsandbytes keeps the 16 fp32 values of the 4-bit code beside every packed tensor."""
NESTED_TABLE = 256 * 4
"""Double quantisation adds a code of 256 values, and one fp32 offset."""


class Packing(NamedTuple):
    """What the layout depends on: bits of a packed weight, weights that share a scale (0: a whole row)."""

    bits: float
    group: int
    nested: bool = False


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


def _bitsandbytes_4bit(at: Packing, out: int, inner: int) -> Blocks:
    count = out * inner
    scales = _ceil(count, at.group)
    if not at.nested:
        return _ceil(count, 2), scales * 4, CODE_TABLE
    return _ceil(count, 2), scales, CODE_TABLE, 4, _ceil(scales, 256) * 4, NESTED_TABLE


def _bitsandbytes_8bit(at: Packing, out: int, inner: int) -> Blocks:
    return out * inner, out * 4


def _fp8(at: Packing, out: int, inner: int) -> Blocks:
    return out * inner, _ceil(out, at.group) * _ceil(inner, at.group) * 4


def _mxfp4(at: Packing, out: int, inner: int) -> Blocks:
    return _ceil(out * inner, 2), _ceil(out * inner, at.group)


def _int4(at: Packing, out: int, inner: int) -> Blocks:
    """compressed-tensors' packed integers: codes, 16-bit scales, the shape."""
    return _ceil(out * inner, 2), out * _ceil(inner, at.group) * 2, 16


def _nvfp4(at: Packing, out: int, inner: int) -> Blocks:
    return _ceil(out * inner, 2), _ceil(out * inner, at.group), 4, 4


def dividing(group: int, inner: int) -> int:
    """The group that a row can have: AutoAWQ and AutoGPTQ refuse one that leaves a rest, so it was packed in halves."""
    while group > 1 and inner % group:
        group //= 2
    return group


def _awq(at: Packing, out: int, inner: int) -> Blocks:
    groups, bits = _ceil(inner, dividing(at.group or inner, inner)), int(at.bits)
    return inner * bits // 8 * out, groups * _ceil(out * bits, 32) * 4, groups * out * 2


def _gptq(at: Packing, out: int, inner: int) -> Blocks:
    return *_awq(at, out, inner), inner * 4


def _hqq(at: Packing, out: int, inner: int) -> Blocks:
    groups = _ceil(out * inner, at.group or inner)
    return _ceil(out * inner * int(at.bits), 8), groups * 2, groups * 2


def _whole(at: Packing, out: int, inner: int) -> Blocks:
    return (int(out * inner * at.bits / 8),)


LAYOUTS: dict[str, Callable[[Packing, int, int], Blocks]] = {
    "plain": _whole,
    "bitsandbytes-4bit": _bitsandbytes_4bit,
    "bitsandbytes-8bit": _bitsandbytes_8bit,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "int4": _int4,
    "nvfp4": _nvfp4,
    "gptq": _gptq,
    "awq": _awq,
    "hqq": _hqq,
    "exl": _whole,
}
"""Layout of each scheme of ``weight_formats.csv``; GGUF files have their own rules (``gguf``)."""
