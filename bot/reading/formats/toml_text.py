"""TOML, with the line of each key."""

import re

import tomli

from bot.reading.entries import DEEPEST, Entry, Refused, flattened

_SECTION = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")


def read_toml(text: str, first_line: int = 1) -> list[Entry]:
    """The entries of a TOML text. Raises ValueError for broken TOML, Refused for what is nested beyond reason."""
    if text.count("[") > 20_000 or any(line.count(".") > DEEPEST * 4 for line in text.splitlines()):
        raise Refused("read.too_deep")
    try:
        value = tomli.loads(text)
    except RecursionError:
        raise Refused("read.too_deep") from None
    lines = _lines(text, first_line)
    try:
        return flattened(value, lambda path, key: lines.get(path, first_line))
    except RecursionError:
        raise Refused("read.too_deep") from None


def _lines(text: str, first_line: int) -> dict[str, int]:
    found: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), first_line):
        if head := _SECTION.match(line):
            section = re.sub(r"[\"'\s]", "", head[1])
        elif key := _KEY.match(line):
            name = re.sub(r"[\"'\s]", "", key[1])
            found.setdefault(f"{section}.{name}" if section else name, number)
    return found
