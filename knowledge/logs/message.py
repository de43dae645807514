"""The numbers of an error message: which family it is of, and its sizes in bytes."""

import re
from math import prod
from typing import Any

from pydantic import BaseModel, ConfigDict

from knowledge.logs.families import Family, families
from knowledge.logs.sizes import bytes_of

Number = int | float | str | list[int]

ELEMENT_BYTES = {"half": 2, "float16": 2, "bfloat16": 2, "double": 8, "int64": 8, "int8": 1, "bool": 1}
WRAPPED = ("torch", "mps")
"""Families whose messages are longer than a line of a terminal."""
COMPLETE = {"tried", "total", "free", "allocated", "process_in_use", "reserved_unallocated"}
"""Numbers of which a message has no more."""
MOST_CANDIDATES = 40
"""Messages of one family that are looked at, the last first: with many ranks each prints its own."""


class Message(BaseModel):
    """What the text states, in bytes unless the name says otherwise; fields that it does not state are absent."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    format: str | None = None

    def get(self, name: str) -> Any:
        """The value of a field, None when the text does not state it."""
        return getattr(self, name, None)

    def size(self, name: str) -> int | None:
        """The bytes of a field, None when the text does not state it."""
        value = getattr(self, name, None)
        return value if isinstance(value, int) else None


def read_message(flat: str, lowered: str, lines: str = "") -> Message:
    """The message of a text whose white space is single spaces; the last complete one when there are several.

    ``lines`` is the text as it was: a terminal may have broken its lines within a word or a number.
    """
    fields: dict[str, Number] = {}
    occurring = [family for family in families() if family.occurs(lowered)]
    for family in occurring:
        if family.name == "torch_piece" and fields.keys() >= COMPLETE:
            continue
        for name, value in _read(family, flat).items():
            fields.setdefault(name, value)
    if occurring and occurring[0].name in WRAPPED and "\n" in lines and not fields.keys() >= COMPLETE:
        for name, value in _read(occurring[0], lines.replace("\n", "")).items():
            fields.setdefault(name, value)
    return Message.model_validate(fields)


def _read(family: Family, flat: str) -> dict[str, Number]:
    starts = [found.start() for found in family.start.finditer(flat)][-MOST_CANDIDATES:]
    if not starts:
        return {}
    if not family.reach:
        return _fields(family, flat)
    read: list[dict[str, Number]] = []
    ends = [*starts[1:], len(flat)]
    for start, end in zip(reversed(starts), reversed(ends), strict=True):
        read.append(_fields(family, flat[start : min(end, start + family.reach)]))
        if read[-1].keys() >= COMPLETE:
            break
    return max(read, key=len)


def _fields(family: Family, window: str) -> dict[str, Number]:
    named = next((name for name, pattern in family.formats if pattern.search(window)), None)
    fields: dict[str, Number] = {"format": named} if named else {}
    if family.backend:
        fields["backend"] = family.backend
    for pattern in (family.start, *family.fields):
        if found := pattern.search(window):
            for name, value in _values(found).items():
                fields.setdefault(name, value)
    for name, pattern in family.sums:
        sizes = [size for one in pattern.finditer(window) if (size := bytes_of(one["value"], one["value_unit"]))]
        if sizes:
            fields[name] = sum(sizes)
    return _with_shape(fields)


def _values(found: re.Match[str]) -> dict[str, Number]:
    groups = {name: text for name, text in found.groupdict().items() if text is not None}
    units = {name.removesuffix("_unit"): text for name, text in groups.items() if name.endswith("_unit")}
    values: dict[str, Number] = {}
    for name, text in groups.items():
        if not name.endswith("_unit"):
            plain, value = _value(name, text, units.get(name))
            if value is not None:
                values[plain] = value
    return values


def _value(name: str, text: str, unit: str | None) -> tuple[str, Number | None]:
    if name == "backend":
        return name, text.lower()
    if name == "shape":
        return "tensor_shape", [int(part) for part in re.findall(r"\d{1,12}", text)][:12]
    if name in ("device", "element"):
        return name, text
    if name.startswith("log_"):
        return name, 1
    if name.endswith("_int"):
        return name.removesuffix("_int"), bytes_of(text, "b")
    if name.endswith("_float"):
        return name.removesuffix("_float"), float(text[:20].rstrip("."))
    if name.endswith("_gb"):
        return name.removesuffix("_gb"), round(float(text[:20]) * 10**9)
    if name.endswith("_g"):
        return name.removesuffix("_g"), bytes_of(text, "GiB")
    return name, bytes_of(text, unit or "b")


def _with_shape(fields: dict[str, Number]) -> dict[str, Number]:
    """A tensor that is named by its shape has a size: by its type, and as fp32."""
    shape = fields.get("tensor_shape")
    element = str(fields.pop("element", "float"))
    if isinstance(shape, list):
        fields["tensor_fp32"] = 4 * prod(shape)
        fields.setdefault("tried", ELEMENT_BYTES.get(element, 4) * prod(shape))
    return fields


def derived_from(message: Message) -> dict[str, int]:
    """What follows from the stated numbers: unused cache, and what others than PyTorch's allocator hold."""
    allocated, total, free = message.size("allocated"), message.size("total"), message.size("free")
    unused = message.size("reserved_unallocated")
    if unused is None and message.size("reserved") is not None and allocated is not None:
        unused = int(message.get("reserved")) - allocated
    if unused is None:
        unused = message.size("cached")
    derived = {"unused_cache": unused, "reserved_unallocated": unused} if unused is not None else {}
    if total is not None and free is not None and allocated is not None:
        derived["outside_pytorch"] = total - free - allocated - (unused or 0)
    elif message.format == "vllm_startup_free" and total is not None and free is not None:
        derived["outside_pytorch"] = total - free  # the engine has not taken anything yet
    return derived
