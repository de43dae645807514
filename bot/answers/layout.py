"""Columns and wrapped lines for texts that mix Chinese and Latin letters."""

import unicodedata

TEXT_WIDTH = 110


def width(text: str) -> int:
    """Columns that a text takes in a terminal; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def padded(text: str, columns: int, right: bool = False) -> str:
    """The text filled up with spaces, to the right-hand side when ``right``."""
    spaces = " " * max(0, columns - width(text))
    return spaces + text if right else text + spaces


def table(rows: list[list[str]], indent: str = "  ", numeric: tuple[int, ...] = (1,)) -> str:
    """Rows in columns; those listed as ``numeric`` end flush, and nothing trails."""
    columns = [max(width(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [padded(cell, columns[index], index in numeric) for index, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def wrapped(text: str, indent: str = "  ", columns: int = TEXT_WIDTH) -> str:
    """The text in lines of at most ``columns``, broken at spaces; later lines are indented."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and width(lines[-1]) + 1 + width(word) > columns:
            lines.append(indent + word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\n".join(lines)
