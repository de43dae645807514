"""JSON, and what people paste as JSON: comments, trailing commas, Python's literals."""

import ast
import json
import re
from typing import Any

from bot.reading.entries import DEEPEST, MOST_ENTRIES, Entry, Refused, flattened

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r",(\s*[}\]])")
LONGEST_LITERAL = 2**16


def read_json(text: str, first_line: int = 1) -> list[Entry]:
    """The entries of an object. Raises ValueError for what is none, Refused for what is nested beyond reason."""
    value = loaded(text)
    if not isinstance(value, dict):
        raise ValueError("no object")
    _check(value, 0, [0])
    return flattened(value, _Lines(text, first_line))


def loaded(text: str) -> Any:
    """The value of a JSON text, comments and trailing commas forgiven. Raises ValueError."""
    for attempt in (text, _TRAILING.sub(r"\1", _COMMENT.sub(lambda found: found[1] or "", text))):
        try:
            return json.loads(attempt, strict=False)
        except ValueError:
            continue
        except RecursionError:
            raise Refused("read.too_deep") from None
    return _literal(text)


def _literal(text: str) -> Any:
    """A Python dict as people paste it."""
    if len(text) > LONGEST_LITERAL:
        raise ValueError("no object")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError("no object") from None


def _check(value: Any, depth: int, seen: list[int]) -> None:
    seen[0] += 1
    if depth > DEEPEST:
        raise Refused("read.too_deep")
    if seen[0] > MOST_ENTRIES:
        raise Refused("read.too_many")
    if isinstance(value, (dict, list, tuple)):
        for inner in value.values() if isinstance(value, dict) else value:
            _check(inner, depth + 1, seen)


class _Lines:
    """Finds the line of each key, walking the text once in the order of the keys."""

    def __init__(self, text: str, first_line: int) -> None:
        self.text, self.position, self.line = text, 0, first_line

    def __call__(self, path: str, key: str) -> int:
        name = f'"{key}"' if key.isidentifier() else json.dumps(key, ensure_ascii=False)
        start = self.position
        while (start := self.text.find(name, start)) >= 0:
            end = start + len(name)
            if self.text[end : end + 20].lstrip().startswith(":"):
                self.line += self.text.count("\n", self.position, start)
                self.position = end
                break
            start = end
        return self.line
