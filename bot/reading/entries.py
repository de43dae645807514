"""What every format is read to: keys with their values and lines."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["yaml", "json", "toml", "command", "python", "modelfile", "environment", "prose"]

LONGEST_TEXT = 2**20
"""Bytes of a paste that are read; a longer one is refused."""
DEEPEST = 40
"""Levels of nesting that a real config stays far below."""
MOST_ENTRIES = 20_000
"""Keys of one paste; aliases count each time they are used."""


class Refused(Exception):
    """A paste that is not read, and the key of the sentence that says why."""

    def __init__(self, key: str, line: int = 0, detail: str = "") -> None:
        super().__init__(key)
        self.key, self.line, self.detail = key, line, detail


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a file or flag of a command: its dotted path, its value, its line, and how it is written."""

    key: str
    value: Any
    line: int
    written: str = ""

    @property
    def last(self) -> str:
        """The key without its sections."""
        return self.key.rsplit(".", 1)[-1]

    @property
    def name(self) -> str:
        """The key as the user wrote it."""
        return self.written or self.key


@dataclass(slots=True)
class Piece:
    """A part of a paste in one format: a file, one command, the calls of a script, or the words around them.

    ``program`` is what a command runs, ``launchers`` what starts it, ``words`` its free arguments.
    """

    form: Form
    entries: list[Entry] = field(default_factory=list)
    line: int = 1
    program: str = ""
    words: list[str] = field(default_factory=list)
    launchers: list["Piece"] = field(default_factory=list)
    text: str = ""
    name: str = ""


def flattened(value: dict[str, Any], line_of: Callable[[str, str], int], path: str = "") -> list[Entry]:
    """Entries of nested mappings in the order of the text; mappings in lists are left in the list's value."""
    found: list[Entry] = []
    for key, inner in value.items():
        dotted = f"{path}.{key}" if path else str(key)
        found.append(Entry(dotted, inner, line_of(dotted, str(key))))
        if isinstance(inner, dict):
            found += flattened(inner, line_of, dotted)
    return found
