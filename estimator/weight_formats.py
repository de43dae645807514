"""The tensors that one matrix becomes under a quantised weight format, as the loaders leave them on the card.

Sources: bitsandbytes 0.50 (``functional.quantize_4bit``, ``quantize_blockwise``), GPTQModel and AutoAWQ buffers
(qweight, qzeros, scales, g_idx), transformers 5.24 ``integrations/finegrained_fp8.py`` and ``mxfp4.py``, NVIDIA
ModelOpt's NVFP4. A block is one allocation; every one takes a multiple of 512 bytes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from estimator.errors import EstimatorError

Blocks = tuple[int, ...]
"""Sizes in bytes of the allocations that hold one matrix."""

GROUPED = re.compile(r"(gptq|awq|hqq|int)-?(\d)bit(?:-g(\d+|-1))?$")
EXL = re.compile(r"exl[23]-(\d+(?:\.\d+)?)bpw$")


@dataclass(frozen=True, slots=True)
class Format:
    """A weight format: its blocks for a matrix (out, in), what it leaves alone, and a short description.

    ``experts``: whether stacked expert matrices are packed too; ``router``: whether routers are.
    """

    name: str
    blocks: Callable[[int, int], Blocks]
    why: str
    experts: bool = True
    router: bool = False
    head_bits: float | None = None


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


def _four_bit(out: int, inner: int) -> Blocks:
    count = out * inner
    return _ceil(count, 2), _ceil(count, 64) * 4, 64


def _four_bit_nested(out: int, inner: int) -> Blocks:
    count = out * inner
    scales = _ceil(count, 64)
    return _ceil(count, 2), scales, 64, 4, _ceil(scales, 256) * 4, 1024


def _int8(out: int, inner: int) -> Blocks:
    return out * inner, out * 4


def _fp8(out: int, inner: int) -> Blocks:
    return out * inner, _ceil(out, 128) * _ceil(inner, 128) * 4


def _mxfp4(out: int, inner: int) -> Blocks:
    return _ceil(out * inner, 2), _ceil(out * inner, 32)


def _nvfp4(out: int, inner: int) -> Blocks:
    return _ceil(out * inner, 2), _ceil(out * inner, 16), 4, 4


def _gptq(bits: int, group: int) -> Callable[[int, int], Blocks]:
    def blocks(out: int, inner: int) -> Blocks:
        groups = _ceil(inner, group or inner)
        return inner * bits // 8 * out, groups * _ceil(out * bits, 32) * 4, groups * out * 2, inner * 4

    return blocks


def _awq(bits: int, group: int) -> Callable[[int, int], Blocks]:
    gptq = _gptq(bits, group)
    return lambda out, inner: gptq(out, inner)[:3]


def _hqq(bits: int, group: int) -> Callable[[int, int], Blocks]:
    def blocks(out: int, inner: int) -> Blocks:
        groups = _ceil(out * inner, group or inner)
        return _ceil(out * inner * bits, 8), groups * 2, groups * 2

    return blocks


PLAIN = {
    "nf4": Format("nf4", _four_bit, "4 bit + fp32 scale per 64 values", experts=False),
    "fp4": Format("fp4", _four_bit, "4 bit + fp32 scale per 64 values", experts=False),
    "nf4-dq": Format(
        "nf4-dq", _four_bit_nested, "4 bit + 8-bit scale per 64 values, fp32 per 256 scales", experts=False
    ),
    "int8": Format("int8", _int8, "8 bit + fp32 scale per output row", experts=False),
    "fp8": Format("fp8", _fp8, "8 bit + fp32 scale per 128 x 128 block"),
    "mxfp4": Format("mxfp4", _mxfp4, "4 bit + one exponent byte per 32 values"),
    "nvfp4": Format("nvfp4", _nvfp4, "4 bit + fp8 scale per 16 values"),
}
KINDS = {"gptq": _gptq, "int": _gptq, "awq": _awq, "hqq": _hqq}
DEFAULT_GROUP = {"hqq": 64}


@lru_cache(maxsize=64)
def weight_format(name: str) -> Format:
    """The format of this name; an error that says which are known otherwise."""
    found = PLAIN.get(name)
    if found is not None:
        return found
    grouped = GROUPED.fullmatch(name)
    if grouped is not None:
        kind, bits = grouped[1], int(grouped[2])
        group = int(grouped[3] or DEFAULT_GROUP.get(kind, 128))
        return Format(name, KINDS[kind](bits, max(group, 0)), _grouped_why(kind, bits, group))
    mixed = EXL.fullmatch(name)
    if mixed is not None:
        bits_per_weight = float(mixed[1])
        return Format(
            name,
            lambda out, inner: (int(out * inner * bits_per_weight / 8),),
            f"{bits_per_weight:g} bit a weight, scales included",
            head_bits=6.0,
        )
    raise EstimatorError(
        f"weight_format {name[:40]!r} is not known; known are {', '.join(PLAIN)}, gptq-4bit-g128, awq-4bit-g128, "
        "exl2-4.0bpw and GGUF types such as Q4_K_M",
        f"尚不支持 weight_format {name[:40]!r}",
        field="weight_format",
    )


def _grouped_why(kind: str, bits: int, group: int) -> str:
    scale = "16-bit scale and 16-bit zero" if kind == "hqq" else f"16-bit scale and {bits}-bit zero"
    order = ", 4 B order index per input" if kind in ("gptq", "int") else ""
    return f"{bits} bit + {scale} per {group if group > 0 else 'column of'} values{order}"
