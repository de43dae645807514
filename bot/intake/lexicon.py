"""The words of ``lexicon.toml``, looked up token by token."""

from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import tomli

from bot.intake.tokens import Token, tokenize

COUNTING = frozenset({"x", "*", "×", "gpus", "gpu", "cards", "card", "nodes", "卡", "张", "块", "机", "台"})
SKIPPED = frozenset("-_")


class Word(NamedTuple):
    """A phrase of the lexicon found in a message: tokens ``start`` to ``end`` mean ``value`` in ``section``."""

    section: str
    value: str
    start: int
    end: int


class _Entry(NamedTuple):
    pieces: tuple[str, ...]
    section: str
    value: str


class Lexicon:
    """Phrases by their first piece, longest first; a phrase is cut into pieces when a message first may hold it."""

    def __init__(self, sections: dict[str, dict[str, list[str]]]) -> None:
        self._values = {section: tuple(values) for section, values in sections.items()}
        self._by_initial: dict[str, list[tuple[str, str, str]]] = {}
        self._beginning_with = lru_cache(maxsize=4096)(self._phrases_from)
        self._words_of = lru_cache(maxsize=16)(self._one_word_phrases)
        for section, values in sections.items():
            for value, phrases in values.items():
                for phrase in phrases:
                    self._by_initial.setdefault(phrase[0].lower(), []).append((phrase.lower(), section, value))

    def _phrases_from(self, first: str) -> list[_Entry]:
        """The phrases whose first piece is ``first``, longest first."""
        near = (one for one in self._by_initial.get(first[0], ()) if one[0].startswith(first))
        entries = [_Entry(_pieces(phrase), section, value) for phrase, section, value in near]
        return sorted((entry for entry in entries if entry.pieces[0] == first), key=lambda entry: -len(entry.pieces))

    def at(self, tokens: list[Token], start: int) -> tuple[Word, ...]:
        """Every phrase that begins at token ``start``, the longest first."""
        found = ((entry, _end_of(entry.pieces, tokens, start)) for entry in self._beginning_with(tokens[start].text))
        return tuple(Word(entry.section, entry.value, start, end) for entry, end in found if end)

    def choices(self, section: str) -> tuple[str, ...]:
        """The values of a section in the order of the file."""
        return self._values.get(section, ())

    def phrases(self, section: str) -> dict[str, str]:
        """Every phrase of a section with its value."""
        known = (one for group in self._by_initial.values() for one in group)
        return {phrase: value for phrase, name, value in known if name == section}

    def words(self, *sections: str) -> dict[str, tuple[str, str]]:
        """Every one-word phrase of these sections with its section and value: what a typo may have meant."""
        return self._words_of(sections)

    def _one_word_phrases(self, sections: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        known = (one for group in self._by_initial.values() for one in group)
        return {
            phrase: (section, value) for phrase, section, value in known if section in sections and phrase.isalpha()
        }


@cache  # over the phrases of the lexicon, which are finite
def _pieces(phrase: str) -> tuple[str, ...]:
    return tuple(token.text for token in tokenize(phrase) if token.text not in SKIPPED)


def _end_of(pieces: tuple[str, ...], tokens: list[Token], start: int) -> int:
    """Index after the last token of a phrase that begins at ``start``; 0 when it is another phrase."""
    position = start
    for number, piece in enumerate(pieces):
        while number and position < len(tokens) and tokens[position].text in SKIPPED:
            position += 1
        if position >= len(tokens) or tokens[position].text != piece:
            return 0
        position += 1
    return 0 if len(pieces) > 1 and _counts_on(tokens, position) else position


def _counts_on(tokens: list[Token], end: int) -> bool:
    """Whether the number that a phrase would end with counts what follows: the 2 of "fsdp 2x3090"."""
    last = tokens[end - 1]
    if last.kind != "number" or last.glued or end >= len(tokens):
        return False
    return tokens[end].text in COUNTING and (tokens[end].glued or tokens[end].kind == "word")


@cache
def lexicon() -> Lexicon:
    """The lexicon that ships with the bot, read once."""
    return Lexicon(tomli.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8")))
