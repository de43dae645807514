"""The facts that ship with the estimator, as text: tables that people can read and review."""

from pathlib import Path

DATA = Path(__file__).parent / "catalogue" / "data"


def read_text(name: str) -> str:
    """The text of a data file of the catalogue."""
    return (DATA / name).read_text(encoding="utf-8")
