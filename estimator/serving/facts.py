"""Constants of the engines by version, read from ``data/serving.toml``."""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import tomli

GIB = 1 << 30
Version = tuple[int, ...]


@lru_cache(maxsize=1)
def facts() -> dict[str, Any]:
    """The whole table."""
    return tomli.loads(files("estimator").joinpath("data/serving.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def version_of(text: str) -> Version:
    """``0.8.5.post1`` as (0, 8, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0].split("post")[0])[:3])


def engine_version(engine: str, stack: Mapping[str, str | None] | None) -> Version:
    """The version that the run states, else the newest that was read."""
    stated = (stack or {}).get(engine) or facts()["newest"].get(engine) or "0"
    return version_of(stated)


def at_version(rows: list[dict[str, Any]], version: Version) -> dict[str, Any]:
    """The last row that holds for ``version``."""
    return [row for row in rows if version_of(row["since"]) <= version][-1]


def by_ranks(table: Mapping[str, float], ranks: int) -> float:
    """The value of the largest count that is not above ``ranks``."""
    return table[max((count for count in table if int(count) <= ranks), key=int)]


def gib(value: float) -> int:
    """GiB as bytes."""
    return int(value * GIB)
