"""Phrases that a text may hold, written for people and compiled to patterns.

Plain words match themselves in lower case, Latin ones as whole words. A space also matches "_", "-" or nothing; ``*``
is up to 45 characters; ``~`` any ending of a word; ``#`` a number, ``##`` one of two digits or more; ``(a|b)`` one of
several, ``(a|b)?`` or none, ``a?`` a letter or none; ``{word}`` any of the words of ``words.toml``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice

import tomli

PIECES = re.compile(r"\{(?P<word>\w+)\}|(?P<sign>[()|?])|(?P<mark>##|[*~# ])|(?P<plain>[^*~# {}()|?]+)")
MARKS = {"*": ".{0,45}?", "~": r"\w*", "#": r"\d[\d.,]*", "##": r"\d{2,}", " ": "[ _-]{0,2}"}
LONGEST_QUOTE = 60
MOST_PLACES = 100
"""Words that occur more often do not narrow a search down."""
SCANNED = frozenset({"{oom}"})
"""Lists in many phrases, whose words are rarer together than each by itself: a text is scanned for them once."""
WORD = 40
"""A word, a number or one of a list is at most about so long."""

Needed = list[tuple[str, ...]]
"""For each part that must occur the plain words of which one must: cheap to look up before the pattern is tried."""


@cache
def shared_words() -> dict[str, list[str]]:
    """The lists of ``words.toml`` by name."""
    words: dict[str, list[str]] = tomli.loads(files("knowledge").joinpath("words.toml").read_text("utf-8"))
    return words


class Text:
    """A text in lower case in which many phrases are looked for: what was found once is remembered."""

    def __init__(self, lowered: str) -> None:
        self.lowered = lowered
        self._places: dict[str, tuple[int, ...]] = {}
        self._of_group: dict[int, list[int]] = {}
        self._found: dict[str, str] = {}

    def places(self, piece: str) -> tuple[int, ...]:
        """Where a plain word, or one of a list that is looked for as a whole, occurs: the first places."""
        places = self._places.get(piece)
        if places is None:
            found = _list_places(piece, self.lowered) if piece in SCANNED else _places(piece, self.lowered)
            places = self._places[piece] = tuple(found)
        return places

    def places_of(self, group: tuple[str, ...]) -> list[int]:
        """Where any word of a group occurs; many phrases need the same groups, which are one object each."""
        places = self._of_group.get(id(group))
        if places is None:
            places = self._of_group[id(group)] = [at for piece in group for at in self.places(piece)]
        return places

    def found(self, phrase: "Phrase") -> str:
        """The words that match a phrase; empty when none do."""
        words = self._found.get(phrase.text)
        if words is None:
            words = self._found[phrase.text] = phrase.searched_in(self)
        return words


def _places(piece: str, lowered: str) -> Iterator[int]:
    at = lowered.find(piece)
    for _ in range(MOST_PLACES):
        if at < 0:
            return
        yield at
        at = lowered.find(piece, at + 1)


def _list_places(name: str, lowered: str) -> Iterator[int]:
    pattern = _compiled(phrase(name).pattern)
    return (found.start() for found in islice(pattern.finditer(lowered), MOST_PLACES))


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase and the pattern that it means; a match is at most ``reach`` characters long."""

    text: str
    pattern: str
    needed: tuple[tuple[str, ...], ...]
    reach: int

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first holds the words that it needs: most texts hold those of few."""
        return _compiled(self.pattern)

    def found_in(self, lowered: str | Text) -> str:
        """The words of the text that match; empty when none do."""
        return (lowered if isinstance(lowered, Text) else Text(lowered)).found(self)

    def searched_in(self, text: Text) -> str:
        """The same, searched for around the needed words that are rarest in the text."""
        rarest: list[int] | None = None
        for group in self.needed:
            places = text.places_of(group)
            if not places:
                return ""
            if len(places) < MOST_PLACES and (rarest is None or len(places) < len(rarest)):
                rarest = places
        pattern = self.compiled
        spans = [(0, len(text.lowered))] if rarest is None else _spans(sorted(rarest), self.reach)
        found = next((one for span in spans if (one := pattern.search(text.lowered, *span))), None)
        return found[0].strip()[:LONGEST_QUOTE] if found else ""


def _spans(places: list[int], reach: int) -> list[tuple[int, int]]:
    """The text around places, where a match that holds one of them lies."""
    spans: list[tuple[int, int]] = []
    for at in places:
        start = max(0, at - reach)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], at + reach)
        else:
            spans.append((start, at + reach))
    return spans


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def phrase(text: str) -> Phrase:
    """The phrase as a pattern. Raises ValueError for brackets without their pair, KeyError for an unknown {word}."""
    pieces = list(PIECES.finditer(text.lower()))
    if sum(len(piece[0]) for piece in pieces) != len(text.lower()):
        raise ValueError(f"braces are for words only: {text}")
    pattern, needed, end = _options(_Pieces(pieces, _partners(pieces, text)), 0)
    if end != len(pieces):
        raise ValueError(f"brackets without their pair: {text}")
    reach = len(text) + 45 * text.count("*") + WORD * (1 + text.count("~") + text.count("#") + text.count("{"))
    return Phrase(text, pattern, tuple(_GROUPS.setdefault(words, words) for words in needed), reach)


_GROUPS: dict[tuple[str, ...], tuple[str, ...]] = {}
"""Each group of words once, so that a text knows it by its identity."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces of a phrase, and for each opening bracket the index of the closing one."""

    found: list[re.Match[str]]
    partners: dict[int, int]

    def sign(self, position: int) -> str | None:
        return self.found[position]["sign"]

    def edge(self, position: int, step: int) -> str:
        """What stands next to a piece on one side, past spaces, the brackets around it and the other choices."""
        at, spaced = position + step, False
        while 0 <= at < len(self.found) and (self.sign(at) or self.found[at][0] == " "):
            spaced = spaced or self.found[at][0] == " "
            if self.sign(at) == "|":
                at = self._outside(at, step)
            at += step
        beside = self.found[at][0] if 0 <= at < len(self.found) else ""
        return beside if beside in ("", "*") else " " if spaced else beside

    def _outside(self, position: int, step: int) -> int:
        """The bracket that encloses a bar, on the side of the step."""
        around = [(start, end) for start, end in self.partners.items() if start < position < end]
        if not around:
            return -1 if step < 0 else len(self.found)
        start, end = max(around)
        return start if step < 0 else end


def _partners(pieces: list[re.Match[str]], text: str) -> dict[int, int]:
    opened: list[int] = []
    partners: dict[int, int] = {}
    for position, piece in enumerate(pieces):
        if piece["sign"] == "(":
            opened.append(position)
        elif piece["sign"] == ")":
            if not opened:
                raise ValueError(f"brackets without their pair: {text}")
            partners[opened.pop()] = position
    if opened:
        raise ValueError(f"brackets without their pair: {text}")
    return partners


def _options(pieces: _Pieces, start: int) -> tuple[str, Needed, int]:
    """Alternatives up to a closing bracket: their pattern, what they need, and the index behind them."""
    options: list[tuple[str, Needed]] = []
    position = start
    while True:
        pattern, needed, position = _sequence(pieces, position)
        options.append((pattern, needed))
        if position >= len(pieces.found) or pieces.sign(position) != "|":
            break
        position += 1
    if len(options) == 1:
        return options[0][0], options[0][1], position
    return "|".join(pattern for pattern, _ in options), _any_of([needed for _, needed in options]), position


def _any_of(options: list[Needed]) -> Needed:
    """What is needed when one of several alternatives is: the longest words of each; nothing if one needs none."""
    best = [max(needed, key=lambda words: min(map(len, words)), default=()) for needed in options]
    return [tuple(word for words in best for word in words)] if all(best) else []


def _sequence(pieces: _Pieces, start: int) -> tuple[str, Needed, int]:
    pattern, needed, position = "", Needed(), start
    while position < len(pieces.found) and pieces.sign(position) not in ("|", ")"):
        part, words, position = _part(pieces, position)
        pattern += part
        needed += words
    return pattern, needed, position


def _part(pieces: _Pieces, position: int) -> tuple[str, Needed, int]:
    piece = pieces.found[position]
    if piece["sign"] == "(":
        inner, needed, end = _options(pieces, position + 1)
        optional = end + 1 < len(pieces.found) and pieces.sign(end + 1) == "?"
        return f"(?:{inner}){'?' if optional else ''}", [] if optional else needed, end + 1 + optional
    if piece["sign"] == "?":
        return "", [], position + 1
    if piece["word"]:
        options = [phrase(option) for option in shared_words()[piece["word"]]]
        joined = "|".join(option.pattern for option in options)
        whole: Needed = [(piece[0],)] if piece[0] in SCANNED else _any_of([list(option.needed) for option in options])
        return f"(?:{joined})", whole, position + 1
    if piece["mark"]:
        return MARKS[piece["mark"]], [], position + 1
    optional = position + 1 < len(pieces.found) and pieces.sign(position + 1) == "?"
    sure = piece["plain"][:-1] if optional else piece["plain"]
    return _whole(pieces, position, optional), [(sure,)] if sure else [], position + 1


def _whole(pieces: _Pieces, position: int, optional: bool) -> str:
    """Plain words, the last letter optional or not; no Latin letter touches another outside the phrase."""
    plain = pieces.found[position]["plain"]
    before, after = pieces.edge(position, -1), pieces.edge(position, 1)
    start = r"(?<![a-z0-9])" if re.match("[a-z0-9]", plain) and before in ("", "*") else ""
    end = r"(?![a-z0-9])" if re.search("[a-z0-9]$", plain) and after in ("", "*") else ""
    return start + re.escape(plain[:-1]) + re.escape(plain[-1]) + "?" * optional + end
