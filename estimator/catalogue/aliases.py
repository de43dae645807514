"""The alias tables: keys to hub ids.

``aliases.tsv`` has the names that mean one model, ``readings.csv`` those that need a reading: sizes, families,
nicknames and names that several models share.
"""

import csv
from dataclasses import dataclass
from functools import cache

from estimator.catalogue.names import squeezed
from estimator.datafiles import read_text

FAMILY_REASONS = ("family", "newest", "company", "product", "smaller of the two")
"""Reasons of nicknames that chose among several models."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a key means: the id, how the name arose, and, where a choice was made, its candidates and reason."""

    id: str
    type: str
    candidates: tuple[str, ...] = ()
    reason: str = ""

    @property
    def ambiguous(self) -> bool:
        """Whether the name could have meant another model."""
        chosen = any(word in self.reason for word in FAMILY_REASONS)
        return self.type in ("ambiguous", "family") or (self.type == "nick" and chosen)


@cache
def _readings() -> dict[str, Known]:
    found: dict[str, Known] = {}
    for name, kind, default, candidates, reason in csv.reader(read_text("readings.csv").splitlines()[1:]):
        found[name] = Known(default, kind, tuple(candidates.split("|")) if candidates else (), reason)
    return found


@cache
def _table() -> str:
    return read_text("aliases.tsv")


def _one(key: str) -> Known | None:
    """One key of the table, by searching its text: building the whole index costs more than a look-up may take."""
    table = _table()
    for mark in (f"\t{key}\n", f"\t{key}|", f"|{key}|", f"|{key}\n"):
        position = table.find(mark)
        if position >= 0:
            start = table.rfind("\n", 0, position) + 1
            model_id, kind, _names = table[start : table.find("\n", position + 1)].split("\t")
            return Known(model_id, kind)
    return None


@cache
def _plain() -> dict[str, Known]:
    found: dict[str, Known] = {}
    for line in _table().splitlines()[1:]:
        model_id, kind, names = line.split("\t")
        known = Known(model_id, kind)
        found.update(dict.fromkeys(names.split("|"), known))
    return found


def exact(key: str) -> Known | None:
    """What a normalised key means, None when it is not in the tables."""
    if not key or "|" in key:
        return None
    return _readings().get(key) or _one(key)


@cache
def _squeezed() -> dict[str, Known]:
    found = {squeezed(key): known for key, known in _plain().items()}
    return found | {squeezed(key): known for key, known in _readings().items()}


def squeezed_key(key: str) -> Known | None:
    """What a key without separators means."""
    return _squeezed().get(key)


@cache
def all_squeezed() -> tuple[str, ...]:
    """Every key without separators."""
    return tuple(_squeezed())


def sizes() -> list[str]:
    """The bare sizes that have a stand-in."""
    return [name for name, known in _readings().items() if known.type == "size" and ":" not in name]
