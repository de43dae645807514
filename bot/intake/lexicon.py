"""The words of ``lexicon.toml``, looked up token by token."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bot.intake.tokens import Token, tokenize

SKIPPED = frozenset("-_")


@dataclass(frozen=True, slots=True)
class Word:
    """A phrase of the lexicon found in a message: tokens ``start`` to ``end`` mean ``value`` in ``section``."""

    section: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Entry:
    pieces: tuple[str, ...]
    section: str
    value: str


class Lexicon:
    """Phrases by their first piece, longest first."""

    def __init__(self, sections: dict[str, dict[str, list[str]]]) -> None:
        self.sections = sections
        self._by_first: dict[str, list[_Entry]] = {}
        for section, values in sections.items():
            for value, phrases in values.items():
                for phrase in phrases:
                    self._add(phrase, section, value)
        for entries in self._by_first.values():
            entries.sort(key=lambda entry: -len(entry.pieces))

    def _add(self, phrase: str, section: str, value: str) -> None:
        pieces = tuple(token.text for token in tokenize(phrase) if token.text not in SKIPPED)
        self._by_first.setdefault(pieces[0], []).append(_Entry(pieces, section, value))

    def at(self, tokens: list[Token], start: int, *sections: str) -> Word | None:
        """The longest phrase of these sections (all when none is named) that begins at token ``start``."""
        for entry in self._by_first.get(tokens[start].text, ()):
            if not sections or entry.section in sections:
                end = _end_of(entry.pieces, tokens, start)
                if end:
                    return Word(entry.section, entry.value, start, end)
        return None

    def phrases(self, *sections: str) -> dict[str, tuple[str, str]]:
        """Every one-word phrase of these sections with its section and value: what a typo may have meant."""
        return {
            entry.pieces[0]: (entry.section, entry.value)
            for entries in self._by_first.values()
            for entry in entries
            if len(entry.pieces) == 1 and entry.section in sections
        }


def _end_of(pieces: tuple[str, ...], tokens: list[Token], start: int) -> int:
    """Index after the last token of a phrase that begins at ``start``; 0 when it is another phrase."""
    position = start
    for number, piece in enumerate(pieces):
        while number and position < len(tokens) and tokens[position].text in SKIPPED:
            position += 1
        if position >= len(tokens) or tokens[position].text != piece:
            return 0
        position += 1
    return position


@cache
def lexicon() -> Lexicon:
    """The lexicon that ships with the bot, read once."""
    return Lexicon(tomllib.loads(files("bot.intake").joinpath("lexicon.toml").read_text("utf-8")))
