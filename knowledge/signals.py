"""Signals of the entries: phrases that a text may hold, and comparisons of facts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from knowledge.facts import Facts, holds, told
from knowledge.phrases import Phrase, Text, phrase

MOST_QUOTES = 2


@dataclass(frozen=True, slots=True)
class Signal:
    """Evidence for an entry: one of the phrases (when there are any) occurs, and all comparisons hold.

    A negative weight speaks against the entry. Of ``beside`` one phrase must occur, too; any of ``unless`` undoes the
    signal.
    """

    weight: float
    says: tuple[Phrase, ...] = ()
    facts: tuple[str, ...] = ()
    beside: tuple[Phrase, ...] = ()
    unless: tuple[Phrase, ...] = ()

    def evidence(self, text: Text, facts: Facts) -> list[str] | None:
        """What speaks for the entry, None when the signal does not hold."""
        if not all(holds(one, facts) for one in self.facts):
            return None
        quotes = list(islice(_found(self.says, text), MOST_QUOTES))
        if (self.says and not quotes) or any(_found(self.unless, text)):
            return None
        if self.beside and not any(_found(self.beside, text)):
            return None
        return [f'"{words}"' for words in quotes] + [told(one, facts) for one in self.facts]


def _found(phrases: tuple[Phrase, ...], text: Text) -> Iterator[str]:
    """The words that match each phrase; most phrases lack words that they need."""
    return (words for one in phrases if text.may_hold(one) and (words := text.found(one)))


def signal(row: dict[str, Any]) -> Signal:
    """A signal from its row in the front matter."""
    return Signal(
        weight=float(row["weight"]),
        says=tuple(phrase(text) for text in row.get("says", ())),
        facts=tuple(row.get("facts", ())),
        beside=tuple(phrase(text) for text in row.get("beside", ())),
        unless=tuple(phrase(text) for text in row.get("unless", ())),
    )
