"""The facts that ship with the estimator, as text: tables that people can read and review."""

from pathlib import Path
from typing import Any

import tomli

CATALOGUE = Path(__file__).parent / "catalogue" / "data"
CONSTANTS = Path(__file__).parent / "data"


def read_text(name: str) -> str:
    """The text of a data file of the catalogue."""
    return (CATALOGUE / name).read_text(encoding="utf-8")


def read_toml(name: str) -> dict[str, Any]:
    """A table of constants with their sources."""
    return tomli.loads((CONSTANTS / name).read_text(encoding="utf-8"))
