"""The grammar of phrases: from the words that people write to a pattern, and to the plain words that it needs.

Plain words match themselves in lower case, Latin ones as whole words. A space also matches "_", "-" or nothing; ``*``
is up to 45 characters; ``~`` any ending of a word; ``#`` a number, ``##`` one of two digits or more; ``(a|b)`` one of
several, ``(a|b)?`` or none, ``a?`` a letter or none; ``{word}`` any of the words of ``words.toml``.
"""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import tomli

PIECES = re.compile(r"\{(?P<word>\w+)\}|(?P<sign>[()|?])|(?P<mark>##|[*~# ])|(?P<plain>[^*~# {}()|?]+)")
LATIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
MARKS = {"*": ".{0,45}?", "~": r"\w*", "#": r"\d[\d.,]*", "##": r"\d{2,}", " ": "[ _-]{0,2}"}
DIGIT = "#"
"""Stands for any digit where words are listed that a match begins with."""
SCANNED = frozenset({"{oom}"})
"""Lists in many phrases, whose words are rarer together than each by itself: a text is scanned for them once."""

Words = tuple[str, ...]
Needed = list[Words]
"""For each part that must occur the plain words of which one must: cheap to look up before the pattern is tried."""


class Part(NamedTuple):
    """A part of a phrase; a match begins with one of ``starts``, or anyhow where there are none."""

    pattern: str
    needed: Needed
    starts: Words = ()
    optional: bool = False


@cache
def shared_words() -> dict[str, list[str]]:
    """The lists of ``words.toml`` by name."""
    words: dict[str, list[str]] = tomli.loads(files("knowledge").joinpath("words.toml").read_text("utf-8"))
    return words


@cache
def parsed(text: str) -> Part:
    """The phrase as a pattern. Raises ValueError for brackets without their pair, KeyError for an unknown {word}."""
    pieces = [(str(piece.lastgroup), piece[0]) for piece in PIECES.finditer(text.lower())]
    if sum(len(piece) for _, piece in pieces) != len(text.lower()):
        raise ValueError(f"braces are for words only: {text}")
    part, end = _options(_Pieces(pieces, _partners(pieces, text)), 0)
    if end != len(pieces):
        raise ValueError(f"brackets without their pair: {text}")
    return part


@cache
def listed(name: str) -> Part:
    """Any of the words of a list."""
    whole = _any_of([parsed(option) for option in shared_words()[name]])
    return Part(f"(?:{whole.pattern})", whole.needed, whole.starts)


class _Pieces(NamedTuple):
    """The pieces of a phrase, each with its kind, and for each opening bracket the index of the closing one."""

    found: list[tuple[str, str]]
    partners: dict[int, int]

    def edge(self, position: int, step: int) -> str:
        """What stands next to a piece on one side, past spaces, the brackets around it and the other choices."""
        found, at, spaced = self.found, position + step, False
        while 0 <= at < len(found) and (found[at][0] == "sign" or found[at][1] == " "):
            spaced = spaced or found[at][1] == " "
            at = (self._outside(at, step) if found[at][1] == "|" else at) + step
        beside = found[at][1] if 0 <= at < len(found) else ""
        return beside if beside in ("", "*") else " " if spaced else beside

    def _outside(self, position: int, step: int) -> int:
        """The bracket that encloses a bar, on the side of the step."""
        around = [(start, end) for start, end in self.partners.items() if start < position < end]
        if not around:
            return -1 if step < 0 else len(self.found)
        start, end = max(around)
        return start if step < 0 else end


def _partners(pieces: list[tuple[str, str]], text: str) -> dict[int, int]:
    opened: list[int] = []
    partners: dict[int, int] = {}
    for position, (_, piece) in enumerate(pieces):
        if piece == "(":
            opened.append(position)
        elif piece == ")":
            if not opened:
                raise ValueError(f"brackets without their pair: {text}")
            partners[opened.pop()] = position
    if opened:
        raise ValueError(f"brackets without their pair: {text}")
    return partners


def _options(pieces: _Pieces, start: int) -> tuple[Part, int]:
    """Alternatives up to a closing bracket as one part, and the index behind them."""
    options: list[Part] = []
    position = start
    while True:
        option, position = _sequence(pieces, position)
        options.append(option)
        if position >= len(pieces.found) or pieces.found[position][1] != "|":
            break
        position += 1
    return (options[0] if len(options) == 1 else _any_of(options)), position


def _any_of(options: list[Part]) -> Part:
    """One of several alternatives: needed are the longest words of each; nothing if one needs none."""
    best = [max(one.needed, key=lambda words: min(map(len, words)), default=()) for one in options]
    needed = [tuple(word for words in best for word in words)] if all(best) else []
    starts = tuple(word for one in options for word in one.starts) if all(one.starts for one in options) else ()
    return Part("|".join(one.pattern for one in options), needed, starts)


def _sequence(pieces: _Pieces, start: int) -> tuple[Part, int]:
    parts: list[Part] = []
    position = start
    while position < len(pieces.found) and pieces.found[position][1] not in ("|", ")"):
        part, position = _part(pieces, position)
        parts.append(part)
    needed = [words for one in parts for words in one.needed]
    return Part("".join(one.pattern for one in parts), needed, _starts(parts)), position


def _starts(parts: list[Part]) -> Words:
    """Words of which a sequence begins with one: those of its first part, of the next ones while they are optional."""
    starts: Words = ()
    for part in parts:
        if not part.starts:
            return ()
        starts += part.starts
        if not part.optional:
            return starts
    return ()


def _part(pieces: _Pieces, position: int) -> tuple[Part, int]:
    kind, piece = pieces.found[position]
    if kind == "plain":
        optional = _is_optional(pieces, position)
        sure = piece[:-1] if optional else piece
        words = (sure,) if sure else ()
        return Part(_whole(pieces, position, optional), [words] if sure else [], words), position + 1
    if kind == "mark":
        return Part(MARKS[piece], [], (DIGIT,) if DIGIT in piece else ()), position + 1
    if kind == "word":
        whole, scanned = listed(piece[1:-1]), (piece,)
        return (Part(whole.pattern, [scanned], scanned) if piece in SCANNED else whole), position + 1
    if piece == "?":
        return Part("", [], optional=True), position + 1
    inner, end = _options(pieces, position + 1)
    optional = _is_optional(pieces, end)
    pattern = f"(?:{inner.pattern}){'?' if optional else ''}"
    return Part(pattern, [] if optional else inner.needed, inner.starts, optional), end + 1 + optional


def _is_optional(pieces: _Pieces, position: int) -> bool:
    return position + 1 < len(pieces.found) and pieces.found[position + 1][1] == "?"


def _whole(pieces: _Pieces, position: int, optional: bool) -> str:
    """Plain words, the last letter optional or not; no Latin letter touches another outside the phrase."""
    plain = pieces.found[position][1]
    start = r"(?<![a-z0-9])" if plain[0] in LATIN and pieces.edge(position, -1) in ("", "*") else ""
    end = r"(?![a-z0-9])" if plain[-1] in LATIN and pieces.edge(position, 1) in ("", "*") else ""
    return start + re.escape(plain) + "?" * optional + end
