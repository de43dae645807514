"""Several runs told one after the other: "7B LoRA on a 4090 and 13B QLoRA on a 3090" is two runs, not eight."""

from itertools import pairwise
from typing import Any

from bot.intake.sheet import Sheet

Fields = dict[str, Any]

READ_AS: dict[str, tuple[str, ...]] = {
    "models": ("model", "size"), "methods": ("method",), "hardware": ("hardware",), "formats": ("weight_format",),
    "shapes": ("micro_batch", "seq_len"),
}  # fmt: skip
"""The readings that each part of a run comes from."""


def by_clause(sheet: Sheet, parts: dict[str, list[Fields]]) -> list[list[Fields]]:
    """The alternatives of each part; parts that have one value in every clause of the message are one of them."""
    told = _of_clauses(sheet, parts)
    rest = [options for name, options in parts.items() if name not in told]
    if not told:
        return rest
    clauses = zip(*(parts[name] for name in told), strict=True)
    return [[{key: value for part in clause for key, value in part.items()} for clause in clauses], *rest]


def _of_clauses(sheet: Sheet, parts: dict[str, list[Fields]]) -> list[str]:
    """The parts that follow each other in the same order again and again; empty where fewer than two do."""
    places = {name: _places(sheet, name) for name, options in parts.items() if name in READ_AS and len(options) > 1}
    places = {name: found for name, found in places.items() if len(found) == len(parts[name])}
    if len(places) < 2 or len({len(found) for found in places.values()}) > 1:
        return []
    order = sorted(places, key=lambda name: places[name][0])
    in_turn = [place for clause in zip(*(places[name] for name in order), strict=True) for place in clause]
    return order if all(before < after for before, after in pairwise(in_turn)) else []


def _places(sheet: Sheet, name: str) -> list[int]:
    return sorted(one.start for one in sheet.readings if one.field in READ_AS[name])
