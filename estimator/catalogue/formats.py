"""How weights are stored: names of quantisation formats, which tensors they cover, and the bytes of one tensor."""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import Any

from estimator.architecture import Architecture, Weight
from estimator.catalogue import gguf
from estimator.errors import EstimatorError
from estimator.inventory import inventory

CODE_TABLE = 16 * 4
"""bitsandbytes keeps the 16 fp32 values of the 4-bit code beside every packed tensor."""
NESTED_TABLE = 256 * 4 + 4
"""Double quantisation adds a 256-value code and an fp32 offset (bitsandbytes 0.50.2, measured on 4096 x 4096)."""

PLAIN = {"fp32": 4, "bf16": 2, "fp16": 2}
FIXED = {
    "nf4": ("bitsandbytes", 4.5, 64),
    "fp4": ("bitsandbytes", 4.5, 64),
    "nf4-dq": ("bitsandbytes", 4.127, 64),
    "fp4-dq": ("bitsandbytes", 4.127, 64),
    "int8": ("bitsandbytes", 8.008, 0),
    "fp8": ("fp8", 8.002, 128),
    "mxfp4": ("mxfp4", 4.25, 32),
    "nvfp4": ("nvfp4", 4.5, 16),
}
"""Scheme, bits a weight with scales (measured on 4096 x 4096 or by arithmetic, see quants.csv), weights a scale."""

SPELLINGS = {
    "bnb-nf4": "nf4",
    "4bit": "nf4",
    "bnb-4bit": "nf4",
    "int4-bnb": "nf4",
    "nf4-double-quant": "nf4-dq",
    "nf4-double": "nf4-dq",
    "bnb-nf4-dq": "nf4-dq",
    "qlora": "nf4-dq",
    "bnb-fp4": "fp4",
    "llm.int8": "int8",
    "llm-int8": "int8",
    "bnb-int8": "int8",
    "bnb-8bit": "int8",
    "8bit": "int8",
    "w8a8": "int8",
    "gptq": "gptq-4bit-g128",
    "gptq-int4": "gptq-4bit-g128",
    "int4": "gptq-4bit-g128",
    "w4a16": "gptq-4bit-g128",
    "gptq-4bit": "gptq-4bit-g128",
    "gptq-int8": "gptq-8bit-g128",
    "gptq-8bit": "gptq-8bit-g128",
    "awq": "awq-4bit-g128",
    "awq-int4": "awq-4bit-g128",
    "awq-4bit": "awq-4bit-g128",
    "float8": "fp8",
    "fp8-e4m3": "fp8",
    "fp8-dynamic": "fp8",
    "fp8-block": "fp8",
    "e4m3": "fp8",
    "mx-fp4": "mxfp4",
    "nv-fp4": "nvfp4",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "gguf": "Q4_K_M",
    "q4": "Q4_K_M",
    "q5": "Q5_K_M",
    "q8": "Q8_0",
    "q6": "Q6_K",
    "q3": "Q3_K_M",
    "q2": "Q2_K",
    "q2-k": "Q2_K",
    "q3-k": "Q3_K_M",
    "q4-k": "Q4_K_M",
    "q5-k": "Q5_K_M",
}
GROUPED = re.compile(r"(gptq|awq|hqq)-?(?:int)?([2348])-?(?:bits?)?(?:-?(?:g|gs|group)?-?(\d{2,4})g?)?")
BPW = re.compile(r"(exl[23])-?(\d(?:\.\d+)?)-?(?:bpw)?|(\d(?:\.\d+)?)-?bpw")


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """A way to store weights. ``bits`` a weight counts scales on a large matrix; ``group`` weights share a scale."""

    name: str
    scheme: str
    bits: float
    group: int = 0

    def tensor_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of one tensor of ``shape`` (out, in), scales and tables included."""
        return _tensor_bytes(self, shape)

    def covers(self, weight: Weight) -> bool:
        """Whether the format packs this tensor; embeddings, head, norms and routers stay in 16 bit."""
        if self.scheme == "plain":
            return True
        if weight.part in UNTOUCHED or weight.role not in ("linear", "expert"):
            return False
        return weight.role == "expert" if self.scheme == "mxfp4" else True


UNTOUCHED = ("head", "router", "shared_gate", "project_in", "project_out", "pooler")


@lru_cache(maxsize=512)
def weight_format(name: str) -> WeightFormat:
    """The format that a name means in any of its spellings; else an ``EstimatorError`` with the nearest names."""
    key = "-".join(re.split(r"[\s_\-]+", str(name)[:60].strip().lower()))
    canonical = SPELLINGS.get(key, key)
    for reading in (_plain, _fixed, _gguf, _grouped, _by_bits):
        found = reading(canonical)
        if found is not None:
            return found
    raise _unknown(name)


def _plain(key: str) -> WeightFormat | None:
    return WeightFormat(key, "plain", 8.0 * PLAIN[key]) if key in PLAIN else None


def _fixed(key: str) -> WeightFormat | None:
    return WeightFormat(key, *FIXED[key]) if key in FIXED else None


def _gguf(key: str) -> WeightFormat | None:
    name = key.upper().replace("-", "_").removeprefix("GGUF_").removeprefix("UD_").removesuffix("_GGUF")
    name = SPELLINGS.get(name.lower().replace("_", "-"), name)
    if name not in gguf.file_types():
        return None
    block = gguf.blocks()[gguf.mixes()[name, "base"][0][1]]
    return WeightFormat(name, "gguf", 8.0 * block.bytes / block.weights, block.weights)


def _grouped(key: str) -> WeightFormat | None:
    found = GROUPED.fullmatch(key)
    if found is None:
        return None
    scheme, bits, group = found[1], int(found[2]), int(found[3] or (64 if found[1] == "hqq" else 128))
    scales = 32 if scheme == "hqq" else 16 + bits
    return WeightFormat(f"{scheme}-{bits}bit-g{group}", scheme, bits + scales / group, group) if group else None


def _by_bits(key: str) -> WeightFormat | None:
    found = BPW.fullmatch(key)
    if found is None:
        return None
    bits = float(found[2] or found[3])
    return WeightFormat(f"{found[1] or 'exl2'}-{bits:g}bpw", "exl2", bits) if bits else None


def known_formats() -> list[str]:
    """Names of formats, for completion and messages."""
    return [*FIXED, "gptq-4bit-g128", "awq-4bit-g128", "exl2-4bpw", *gguf.file_types(), *PLAIN]


def _unknown(name: str) -> EstimatorError:
    # Imported late: only a refusal needs it.
    from difflib import get_close_matches

    near = get_close_matches(str(name)[:60], known_formats(), n=3, cutoff=0.4) or ["nf4", "gptq-4bit-g128", "Q4_K_M"]
    shown = repr(" ".join(str(name)[:60].split()))
    return EstimatorError(
        f"no weight format is known as {shown}; the nearest are {', '.join(near)}",
        f"没有名为 {shown} 的权重格式;最接近的有 {'、'.join(near)}",
        field="weight_format",
    )


def _tensor_bytes(form: WeightFormat, shape: tuple[int, ...]) -> int:
    numel, inner = prod(shape), shape[-1]
    outer = numel // inner if inner else 0
    if form.scheme == "bitsandbytes":
        return _bitsandbytes_bytes(form.name, numel, outer)
    if form.scheme in ("gptq", "awq", "hqq"):
        return _grouped_bytes(form, outer, inner)
    if form.scheme == "fp8":
        # One fp32 scale per 128 x 128 block of every matrix (DeepSeek-V3, Qwen3-FP8 configs).
        return numel + 4 * prod(shape[:-2]) * ceil(shape[-2] / 128) * ceil(inner / 128) if len(shape) > 1 else numel
    if form.scheme == "mxfp4":
        return numel // 2 + ceil(numel / 32)
    if form.scheme == "nvfp4":
        return numel // 2 + ceil(numel / 16) + 4
    if form.scheme == "gguf":
        return gguf.tensor_bytes(gguf.fitting(gguf.mixes()[form.name, "base"][0][1], inner), shape)
    return ceil(numel * form.bits / 8)


def _bitsandbytes_bytes(name: str, numel: int, rows: int) -> int:
    """Pairs packed into bytes with scales, or a byte a weight and an fp32 scale a row (bitsandbytes 0.50.2).

    The 4-bit scale is an fp32 absmax per 64 weights; double quantisation stores it in 8 bits, in blocks of 256.
    """
    if name == "int8":
        return numel + 4 * rows
    scales = ceil(numel / 64)
    packed = ceil(numel / 2) + CODE_TABLE
    return packed + (scales + 4 * ceil(scales / 256) + NESTED_TABLE if name.endswith("-dq") else 4 * scales)


def _grouped_bytes(form: WeightFormat, rows: int, inner: int) -> int:
    """GPTQ/AWQ buffers: packed weights, fp16 scales and packed zeros a group; GPTQ adds an int32 index a column."""
    bits = int(form.name.split("-")[1][0])
    groups = ceil(inner / form.group)
    zeros = 2 * 8 if form.scheme == "hqq" else bits
    index = 4 * inner if form.scheme == "gptq" else 0
    return rows * inner * bits // 8 + groups * rows * 2 + groups * rows * zeros // 8 + index


def model_bytes(arch: Architecture, form: WeightFormat, unpacked_bytes: int = 2) -> int:
    """Bytes of all weights of a model stored in ``form``; what it does not pack takes ``unpacked_bytes`` an element."""
    if form.scheme == "gguf":
        return gguf.file_bytes(arch, form.name)
    found = inventory(arch)
    total = sum(_stored_bytes(weight, form, unpacked_bytes) for weight in found.stem + found.top)
    by_kind = [sum(_stored_bytes(weight, form, unpacked_bytes) for weight in kind.weights) for kind in found.kinds]
    return total + sum(by_kind[index] for index in found.layers)


def _stored_bytes(weight: Weight, form: WeightFormat, unpacked_bytes: int) -> int:
    return form.tensor_bytes(weight.shape) if form.covers(weight) else weight.numel * unpacked_bytes


def stated_format(config: dict[str, Any]) -> str | None:
    """The weight format that a config's ``quantization_config`` states, None without one or for an unknown method."""
    stated = config.get("quantization_config")
    if not isinstance(stated, dict):
        return None
    method = str(stated.get("quant_method", "")).lower().replace("_", "-")
    bits, group = stated.get("bits", stated.get("w_bit", 4)), stated.get("group_size", stated.get("q_group_size", 128))
    if method in ("gptq", "awq") and isinstance(bits, int) and isinstance(group, int):
        return f"{method}-{bits}bit-g{group}" if group > 0 else f"{method}-{bits}bit-g128"
    if method.startswith("bitsandbytes"):
        return _bitsandbytes_format(stated)
    return {"fp8": "fp8", "fbgemm-fp8": "fp8", "mxfp4": "mxfp4", "modelopt": "fp8", "compressed-tensors": "fp8"}.get(
        method
    )


def _bitsandbytes_format(stated: dict[str, Any]) -> str:
    if not stated.get("load_in_4bit", stated.get("_load_in_4bit")):
        return "int8"
    kind = str(stated.get("bnb_4bit_quant_type", "fp4"))
    name = kind if kind in ("nf4", "fp4") else "nf4"
    return f"{name}-dq" if stated.get("bnb_4bit_use_double_quant") else name
