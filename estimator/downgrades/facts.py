"""The move table (data/downgrades.toml): order, names, costs and what changes for the result."""

from functools import cache
from importlib.resources import files
from typing import Any

import tomli


@cache
def table() -> dict[str, Any]:
    """The file, parsed once."""
    return tomli.loads(files("estimator").joinpath("data/downgrades.toml").read_text("utf-8"))


@cache
def ranks(order: str) -> dict[str, int]:
    """Move to its cost class in an order ("document" or "lossless"), cheapest 0."""
    return {move: rank for rank, moves in enumerate(table()["orders"][order]) for move in moves}


@cache
def sequence(order: str) -> tuple[str, ...]:
    """Moves from the cheapest to the dearest."""
    return tuple(ranks(order))


def facts(move: str) -> dict[str, Any]:
    """Title, note and costs of a move."""
    found: dict[str, Any] = table()["move"][move]
    return found
