"""The tables of the cost model, each figure with its source."""

from functools import cache
from pathlib import Path
from typing import Any

import tomli


@cache
def table_of(name: str) -> dict[str, Any]:
    """``data/NAME.toml``, read once."""
    return tomli.loads((Path(__file__).parent / "data" / f"{name}.toml").read_text("utf-8"))
