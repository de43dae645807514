"""Signals of the entries: phrases that a text may hold, and comparisons of facts."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from knowledge.facts import Facts, holds, told

PIECES = re.compile(r"\{(\w+)\}|\(([^()]*)\)|([*~# ])|([^*~# {}()]+)")
GAP = ".{0,60}?"
MARKS = {"*": GAP, "~": r"\w*", "#": r"\d[\d.,]*", " ": "[ _-]{0,2}"}
LONGEST_QUOTE = 60


@cache
def _words() -> dict[str, list[str]]:
    words: dict[str, list[str]] = tomllib.loads(files("knowledge").joinpath("words.toml").read_text("utf-8"))
    return words


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase and its pattern; every group of ``needed`` has a piece that must occur, which is cheap to look up."""

    text: str
    pattern: re.Pattern[str]
    needed: tuple[tuple[str, ...], ...]

    def found_in(self, lowered: str) -> str:
        """The words of the text that match; empty when none do."""
        if not all(any(piece in lowered for piece in pieces) for pieces in self.needed):
            return ""
        found = self.pattern.search(lowered)
        return found[0].strip()[:LONGEST_QUOTE] if found else ""


@cache
def phrase(text: str) -> Phrase:
    """The phrase in its pattern; see ``words.toml`` for the signs. Raises KeyError for an unknown {word}."""
    pattern, needed = "", []
    for word, group, mark, plain in PIECES.findall(text.lower()):
        if word or group:
            options = _words()[word] if word else group.split("|")
            pattern += "(?:" + "|".join(_bounded(option) for option in options) + ")"
            needed.append(tuple(max(_literals(option), key=len) for option in options))
        elif mark:
            pattern += MARKS[mark]
        else:
            pattern += re.escape(plain)
            needed.append((plain,))
    return Phrase(text, re.compile(_edged(text.lower(), pattern)), tuple(needed))


def _bounded(option: str) -> str:
    pattern = "".join(MARKS.get(one, re.escape(one)) for one in option)
    return _edged(option, pattern)


def _edged(text: str, pattern: str) -> str:
    """Latin words are whole words; Chinese matches anywhere."""
    before = r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", text) else ""
    after = r"(?![a-z0-9])" if re.search(r"[a-z0-9]$", text) else ""
    return before + pattern + after


def _literals(option: str) -> list[str]:
    return [piece for piece in re.split(r"[*~# _-]", option) if piece] or [option]


@dataclass(frozen=True, slots=True)
class Signal:
    """Evidence for an entry: one of the phrases (when there are any) occurs, and all comparisons hold.

    A negative weight speaks against the entry. ``unless`` are phrases and comparisons that undo the signal.
    """

    weight: float
    says: tuple[Phrase, ...] = ()
    facts: tuple[str, ...] = ()
    unless: tuple[Phrase, ...] = ()

    def evidence(self, lowered: str, facts: Facts) -> list[str] | None:
        """What speaks for the entry, None when the signal does not hold."""
        if not all(holds(one, facts) for one in self.facts) or any(one.found_in(lowered) for one in self.unless):
            return None
        quotes = [words for one in self.says if (words := one.found_in(lowered))]
        if self.says and not quotes:
            return None
        return [f'"{words}"' for words in quotes[:2]] + [told(one, facts) for one in self.facts]


def signal(row: dict[str, Any]) -> Signal:
    """A signal from its row in the front matter."""
    return Signal(
        weight=float(row["weight"]),
        says=tuple(phrase(text) for text in row.get("says", ())),
        facts=tuple(row.get("facts", ())),
        unless=tuple(phrase(text) for text in row.get("unless", ())),
    )
