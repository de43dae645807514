"""The message while it is being read: its tokens, which of them are used up, and what was found so far."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.intake.lexicon import Word, lexicon
from bot.intake.spelled import spelled
from bot.intake.tokens import Token, clean, tokenize


class Reading(NamedTuple):
    """One thing that the message says: a field, its value, the words it was read from and why they mean that."""

    field: str
    value: Any
    text: str
    why: str
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Sheet:
    """Tokens and readings of one message; a token belongs to one reading at most."""

    text: str
    tokens: list[Token]
    taken: list[bool]
    readings: list[Reading] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    declined: set[str] = field(default_factory=set)
    questions: set[str] = field(default_factory=set)
    asked_at: dict[str, int] = field(default_factory=dict)
    against: bool = False
    guesses: int = 0
    found: list[tuple[Word, ...]] = field(default_factory=list)
    named: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, message: str) -> "Sheet":
        """A fresh sheet for a message as typed."""
        text = spelled(clean(message))
        tokens = tokenize(text)
        known = lexicon()
        found = [known.at(tokens, index) for index in range(len(tokens))]
        return cls(text, tokens, [False] * len(tokens), found=found)

    def words(self, start: int, end: int) -> str:
        """The message's own spelling of tokens ``start`` to ``end``."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def is_free(self, start: int, end: int) -> bool:
        """Whether no reading has used any of these tokens."""
        return not any(self.taken[start:end])

    def take(self, start: int, end: int) -> None:
        """Use tokens up without a reading of their own."""
        for index in range(start, end):
            self.taken[index] = True

    def read(self, name: str, value: Any, start: int, end: int, why: str) -> None:
        """Note a reading and use its tokens up."""
        self.readings.append(Reading(name, value, self.words(start, end), why, start, end))
        self.take(start, end)

    def free_starts(self) -> Iterator[int]:
        """Every index whose token is still free when its turn comes."""
        return (index for index in range(len(self.tokens)) if not self.taken[index])

    def phrase(self, start: int, *sections: str) -> Word | None:
        """The lexicon's phrase at ``start``, when all its tokens are free."""
        if start >= len(self.tokens):
            return None
        word = self.word_at(start, *sections)
        return word if word and self.is_free(word.start, word.end) else None

    def word_at(self, start: int, *sections: str) -> Word | None:
        """The longest phrase of these sections (all when none is named) at ``start``, used up or not."""
        for word in self.found[start]:
            if not sections or word.section in sections:
                return word
        return None

    def has(self, section: str, value: str | None = None) -> bool:
        """Whether any phrase of a section occurs, or one that means ``value``, used up or not."""
        values = self.named.get(section)
        if values is None:
            words = (self.word_at(index, section) for index in range(len(self.tokens)))
            values = self.named[section] = {word.value for word in words if word}
        return bool(values) if value is None else value in values

    def has_at(self, start: int, *sections: str) -> bool:
        """Whether a phrase of these sections begins at ``start``, used up or not."""
        return self.word_at(start, *sections) is not None

    def values(self, name: str) -> list[Any]:
        """All values read for a field, in the order of the message, each once."""
        ordered = sorted((reading for reading in self.readings if reading.field == name), key=lambda one: one.start)
        values: list[Any] = []
        for reading in ordered:
            if reading.value not in values:
                values.append(reading.value)
        return values
