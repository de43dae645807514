"""Columns and wrapped lines for texts that mix Chinese and Latin letters."""

import re
import unicodedata

TEXT_WIDTH = 110
LEAST_WIDTH = 40
"""Columns that a wrapped column has at least: beside a very wide one it goes beyond the text's width."""
_NARROW = r"\S+|\s+"
_WIDE = r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+|\s+"
"""Compiled by the first text that holds such characters: classes so wide take milliseconds."""
_NEVER_FIRST = frozenset("，。；：、）”！？")


def width(text: str) -> int:
    """Columns that a text takes in a terminal; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def padded(text: str, columns: int, right: bool = False) -> str:
    """The text filled up with spaces, to the right-hand side when ``right``."""
    spaces = " " * max(0, columns - width(text))
    return spaces + text if right else text + spaces


def table(
    rows: list[list[str]], indent: str = "  ", numeric: tuple[int, ...] = (1,), columns_of_text: int = TEXT_WIDTH
) -> str:
    """Rows in columns; those listed as ``numeric`` end flush, and the last one wraps below itself."""
    if not rows:
        return ""
    columns = [max(width(row[index]) for row in rows) for index in range(len(rows[0]))]
    start = len(indent) + sum(columns[:-1]) + 2 * (len(columns) - 1)
    lines = []
    for row in rows:
        cells = [padded(cell, columns[index], index in numeric) for index, cell in enumerate(row[:-1])]
        last = wrapped(row[-1], " " * start, max(columns_of_text - start, LEAST_WIDTH)) if len(columns) > 2 else row[-1]
        if len(columns) == 2 and 1 in numeric:
            last = padded(last, columns[1], right=True)
        lines.append((indent + "  ".join([*cells, last])).rstrip())
    return "\n".join(lines)


def wrapped(text: str, indent: str = "  ", columns: int = TEXT_WIDTH) -> str:
    """The text in lines of at most ``columns``, broken at spaces or between Chinese characters."""
    lines, taken = [""], 0
    for piece in re.findall(_WIDE if max(text, default="") >= "\u3000" else _NARROW, text):
        wide = width(piece)
        if lines[-1] and taken + wide > columns and piece not in _NEVER_FIRST:
            lines.append(piece.lstrip())
            taken = width(lines[-1])
        else:
            lines[-1] += piece
            taken += wide
    return ("\n" + indent).join(line.rstrip() for line in lines if line.strip())
