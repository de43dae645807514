"""Ollama's Modelfile: FROM and PARAMETER lines."""

import re

from bot.reading.entries import Entry
from bot.reading.scalars import plain

_LINE = re.compile(r"\s*(FROM|ADAPTER|PARAMETER)\s+(.+?)\s*$", re.IGNORECASE)


def read_modelfile(text: str, first_line: int = 1) -> list[Entry]:
    """``from``, ``adapter`` and the parameters by their names."""
    found: list[Entry] = []
    inside = False
    for line, content in enumerate(text.splitlines(), first_line):
        match = _LINE.match(content) if not inside else None
        inside ^= content.count('"""') % 2 == 1
        if match is None:
            continue
        word, rest = match[1].upper(), match[2]
        if word != "PARAMETER":
            found.append(Entry(word.lower(), rest.strip("\"'"), line, word))
        elif len(parts := rest.split(None, 1)) == 2:
            found.append(Entry(parts[0], plain(parts[1].strip("\"'")), line, f"PARAMETER {parts[0]}"))
    return found
