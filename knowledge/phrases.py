"""Phrases that a text may hold, written for people (see ``grammar.py``), and the search for many of them in one text.

Most phrases do not occur. So the plain words that any of them needs are looked up first, all at once; a pattern is
compiled and tried only where a match may begin, with all that it needs near behind.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from knowledge.grammar import DIGIT, SCANNED, Words, listed, parsed

LONGEST_QUOTE = 60
MOST_PLACES = 100
"""Words that occur more often do not narrow a search down."""
WORD = 40
"""A word, a number or one of a list is at most about so long."""
GRAM = 3
DIGITS = re.compile(r"\d")

Places = list[int]

_GROUPS: dict[Words, Words] = {}
"""Each group of words once, so that a text knows it by its identity."""
_WORDS: dict[str, dict[str, frozenset[str]]] = {}
"""The plain words of all phrases by their first three letters, each with all its pieces of three letters.

A text that lacks one of the pieces lacks the word; shorter words are listed under no letters.
"""


class Text:
    """A text in lower case in which many phrases are looked for: what was found once is remembered."""

    def __init__(self, lowered: str) -> None:
        self.lowered = lowered
        self._held: set[str] = set()
        self._looked_up = 0
        self._places: dict[str, Places] = {}
        self._of_group: dict[int, Places | None] = {}
        self._found: dict[str, str] = {}

    def found(self, phrase: "Phrase") -> str:
        """The words that match a phrase; empty when none do."""
        if not self.may_hold(phrase):
            return ""
        words = self._found.get(phrase.text)
        if words is None:
            words = self._found[phrase.text] = phrase.searched_in(self)
        return words

    def may_hold(self, phrase: "Phrase") -> bool:
        """Whether of each group of words that a phrase needs one occurs."""
        if self._looked_up != len(_GROUPS):
            self._look_up()
        held = self._held
        for group in phrase.needed:  # noqa: SIM110 - asked a thousand times for a text
            if held.isdisjoint(group):
                return False
        return True

    def _look_up(self) -> None:
        lowered, scanned = self.lowered, [(name, *_scanned(name)) for name in SCANNED]
        grams = _grams(lowered)
        likely = [group for first in grams if (group := _WORDS.get(first))]
        self._held = {word for group in likely for word, own in group.items() if own <= grams and word in lowered}
        self._held.add(DIGIT)
        self._looked_up = len(_GROUPS)
        for name, pattern, starts in scanned:
            begun = sorted({at for word in starts for at in self._all_places(word)})
            self._places[name] = [at for at in begun if pattern.match(lowered, at)]
        self._held |= {name for name in SCANNED if self._places[name]}

    def places(self, word: str) -> Places:
        """Where a plain word, any digit, or one of a list that is looked for as a whole, occurs: the first places."""
        places = self._places.get(word)
        if places is None:
            found = (one.start() for one in DIGITS.finditer(self.lowered)) if word == DIGIT else self._all_places(word)
            places = self._places[word] = list(islice(found, MOST_PLACES))
        return places

    def _all_places(self, word: str) -> Iterator[int]:
        at = self.lowered.find(word) if word in self._held else -1
        while at >= 0:
            yield at
            at = self.lowered.find(word, at + 1)

    def places_of(self, group: Words) -> Places | None:
        """Where any word of a group occurs, in order; None where one does too often to tell all."""
        key = id(group)
        if key not in self._of_group:
            found = [self.places(word) for word in group if word in self._held]
            many = any(len(places) >= MOST_PLACES for places in found)
            self._of_group[key] = None if many else sorted({at for places in found for at in places})
        return self._of_group[key]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase and the pattern that it means; a match is at most ``reach`` characters long."""

    text: str
    pattern: str
    needed: tuple[Words, ...]
    starts: Words
    reach: int

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first holds the words that it needs: most texts hold those of few."""
        return _compiled(self.pattern)

    def found_in(self, text: Text) -> str:
        """The words of the text that match; empty when none do."""
        return text.found(self)

    def searched_in(self, text: Text) -> str:
        """The same, tried wherever a match may begin, else searched for around the needed words that are rarest."""
        needed = [places for group in self.needed if (places := text.places_of(group)) is not None]
        starts = text.places_of(self.starts) if self.starts else None
        if starts is not None:
            likely = (at for at in starts if all(_is_within(places, at, self.reach) for places in needed))
            found = next((one for at in likely if (one := self.compiled.match(text.lowered, at))), None)
        else:
            spans = _spans(min(needed, key=len), self.reach) if needed else [(0, len(text.lowered))]
            found = next((one for span in spans if (one := self.compiled.search(text.lowered, *span))), None)
        return found[0].strip()[:LONGEST_QUOTE] if found else ""


def _is_within(places: Places, start: int, reach: int) -> bool:
    """Whether one of the places is at the start or at most so far behind it."""
    behind = bisect_left(places, start)
    return behind < len(places) and places[behind] <= start + reach


def _spans(places: Places, reach: int) -> list[tuple[int, int]]:
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
def _scanned(name: str) -> tuple[re.Pattern[str], Words]:
    """The pattern of a list that is looked for as a whole, and the words with which it begins."""
    part = listed(name.strip("{}"))
    return _compiled(part.pattern), _known(part.starts)


@cache
def phrase(text: str) -> Phrase:
    """The phrase as a pattern. Raises ValueError for brackets without their pair, KeyError for an unknown {word}."""
    part = parsed(text)
    reach = len(text) + 45 * text.count("*") + WORD * (1 + text.count("~") + text.count("#") + text.count("{"))
    needed = tuple(_known(words) for words in part.needed)
    return Phrase(text, part.pattern, needed, _known(part.starts), reach)


def _known(words: Words) -> Words:
    """The group as the one object that stands for it, its words ready to be looked up."""
    if words not in _GROUPS:
        for word in words:
            _WORDS.setdefault(word[:GRAM] if len(word) >= GRAM else "", {})[word] = _grams(word)
    return _GROUPS.setdefault(words, words)


def _grams(text: str) -> frozenset[str]:
    """The pieces of three letters of a text, and the empty one."""
    return frozenset({"", *(text[at : at + GRAM] for at in range(len(text) - GRAM + 1))})
