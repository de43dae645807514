"""How weights are stored: names of quantisation formats, which tensors they cover, and the blocks of one tensor.

``weight_formats.csv`` holds the facts of each format, ``format_spellings.csv`` what else people call it.
"""

import csv
import re
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

from estimator.architecture import UNPACKED, Weight
from estimator.catalogue import gguf
from estimator.catalogue.layouts import LAYOUTS, Blocks, Packing
from estimator.datafiles import read_text
from estimator.errors import EstimatorError

GROUPED = re.compile(r"(gptq|awq|hqq|int)-?(?:int)?([2348])-?(?:bits?)?(?:-?(?:g|gs|group)?-?(\d{2,4}|(?<=g)-1)g?)?")
BPW = re.compile(r"(exl[23])-?(\d(?:\.\d+)?)-?(?:bpw)?|(\d(?:\.\d+)?)-?bpw")


class WeightFormat(NamedTuple):
    """A way to store weights. ``bits`` a weight counts scales on a large matrix; ``group`` weights share a scale.

    ``packed_bits`` are those of a packed weight alone; ``experts`` says whether stacked experts are packed too (yes,
    no, only); ``leaves`` names the parts that stay in 16 bit besides embeddings and norms; ``head_bits`` are those of
    a head that is packed in its own way. ``figures`` describes the format in a few figures.
    """

    name: str
    scheme: str
    bits: float
    group: int = 0
    packed_bits: float = 16
    experts: str = "yes"
    leaves: tuple[str, ...] = ()
    head_bits: float | None = None
    figures: str = ""
    figures_zh: str = ""

    def covers(self, weight: Weight, mixture: bool = True) -> bool:
        """Whether the format packs this tensor of a model (with experts, if it is a ``mixture``)."""
        if self.scheme == "plain":
            return True
        if weight.role == "expert":
            return self.experts != "no" and len(weight.shape) > 1
        if weight.role != "linear" or len(weight.shape) != 2 or not weight.name.endswith(".weight"):
            return False
        return weight.part not in (*self.leaves, UNPACKED) and not (self.experts == "only" and mixture)

    def blocks(self, shape: tuple[int, ...], head: bool = False) -> Blocks:
        """Bytes of the allocations that hold a tensor of ``shape``; stacked matrices share theirs."""
        if self.scheme == "gguf":
            return (gguf.tensor_bytes(gguf.base_type(self.name), shape),)
        if head and self.head_bits is not None:
            return (int(prod(shape) * self.head_bits / 8),)
        packing = Packing(self.packed_bits, self.group, self.name.endswith("-dq"))
        out, inner = (shape[-2], shape[-1]) if len(shape) > 1 else (1, shape[0])
        return tuple(prod(shape[:-2]) * block for block in LAYOUTS[self.scheme](packing, out, inner))

    def tensor_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of one tensor of ``shape`` (out, in), scales and tables included."""
        return sum(self.blocks(shape))


@cache
def _facts() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in csv.DictReader(read_text("weight_formats.csv").splitlines())}


@cache
def _spellings() -> dict[str, str]:
    rows = csv.DictReader(read_text("format_spellings.csv").splitlines())
    return {spelling: row["name"] for row in rows for spelling in row["spellings"].split()}


@lru_cache(maxsize=512)
def weight_format(name: str) -> WeightFormat:
    """The format that a name means in any of its spellings; else an ``EstimatorError`` with the nearest names."""
    found = _fixed(name) or _grouped(name) or _by_bits(name)
    if found is not None:
        return found
    key = "-".join(re.split(r"[\s_\-]+", str(name)[:60].strip().lower()))
    canonical = name if name in gguf.file_types() else _spellings().get(key, key)
    file_type = _file_type(canonical)
    found = (
        _gguf(file_type) if file_type is not None else _fixed(canonical) or _grouped(canonical) or _by_bits(canonical)
    )
    if found is None:
        raise _unknown(name)
    return found


def _file_type(key: str) -> str | None:
    name = key.upper().replace("-", "_").removeprefix("GGUF_").removeprefix("UD_").removesuffix("_GGUF")
    name = _spellings().get(name.lower().replace("_", "-"), name)
    return name if name in gguf.file_types() and key not in _facts() else None


def _gguf(name: str) -> WeightFormat:
    block = gguf.blocks()[gguf.base_type(name)]
    return WeightFormat(name, "gguf", 8.0 * block.bytes / block.weights, block.weights)


def _fixed(key: str) -> WeightFormat | None:
    fact = _facts().get(key)
    if fact is None or not fact["bits"]:
        return None
    return _format(key, fact, float(fact["packed_bits"]), float(fact["bits"]), int(fact["group"] or 0))


def _grouped(key: str) -> WeightFormat | None:
    found = GROUPED.fullmatch(key)
    if found is None:
        return None
    scheme = "gptq" if found[1] == "int" else found[1]
    fact, bits = _facts()[scheme], int(found[2])
    group = int(found[3] or fact["group"])
    if not group:
        return None
    shared = max(group, 0)
    scales = 16 + _zero_bits(fact, bits)
    return _format(f"{scheme}-{bits}bit-g{group}", fact, bits, bits + (scales / shared if shared else 0), shared)


def _zero_bits(fact: dict[str, str], bits: float) -> int:
    return int(bits) if fact["zero_bits"] == "packed" else int(fact["zero_bits"] or 0)


def _by_bits(key: str) -> WeightFormat | None:
    found = BPW.fullmatch(key)
    if found is None:
        return None
    bits, scheme = float(found[2] or found[3]), found[1] or "exl2"
    return _format(f"{scheme}-{bits:g}bpw", _facts()[scheme], bits, bits, 0) if bits else None


def _format(name: str, fact: dict[str, str], packed_bits: float, bits: float, group: int) -> WeightFormat:
    shown = {"bits": f"{packed_bits:g}", "zero": _zero_bits(fact, packed_bits), "group": group or "column"}
    return WeightFormat(
        name,
        fact["scheme"],
        bits,
        group,
        packed_bits,
        fact["experts"],
        tuple(fact["leaves"].split()),
        float(fact["head_bits"]) if fact["head_bits"] else None,
        fact["figures"].format(**shown),
        fact["figures_zh"].format(**{**shown, "group": group or "一列"}),
    )


def known_formats() -> list[str]:
    """Names of formats, for completion and messages."""
    fixed = [name for name, fact in _facts().items() if fact["bits"]]
    return [*fixed, "gptq-4bit-g128", "awq-4bit-g128", "exl2-4bpw", *gguf.file_types()]


def _unknown(name: str) -> EstimatorError:
    # Imported late: only a refusal needs it.
    from difflib import get_close_matches

    near = get_close_matches(str(name)[:60], known_formats(), n=3, cutoff=0.4) or ["nf4", "gptq-4bit-g128", "Q4_K_M"]
    shown = repr(" ".join(str(name)[:60].split()))
    return EstimatorError(
        f"no weight format is known as {shown}; the nearest are {', '.join(near)}",
        f"没有名为 {shown} 的权重格式；最接近的有 {'、'.join(near)}",
        field="weight_format",
    )


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
    if method in ("modelopt", "compressed-tensors"):
        return _by_groups(stated)
    return {"fp8": "fp8", "fbgemm-fp8": "fp8", "mxfp4": "mxfp4"}.get(method)


def _by_groups(stated: dict[str, Any]) -> str:
    """compressed-tensors and ModelOpt state the weights by groups of modules; fp8 where they do not."""
    groups = stated.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict) or weights.get("num_bits") != 4:
        return "nvfp4" if "nvfp4" in str(stated.get("quant_algo", "")).lower() else "fp8"
    return "nvfp4" if weights.get("type") == "float" else "int4-experts"


def _bitsandbytes_format(stated: dict[str, Any]) -> str:
    if not stated.get("load_in_4bit", stated.get("_load_in_4bit")):
        return "int8"
    kind = str(stated.get("bnb_4bit_quant_type", "fp4"))
    name = kind if kind in ("nf4", "fp4") else "nf4"
    return f"{name}-dq" if stated.get("bnb_4bit_use_double_quant") else name
