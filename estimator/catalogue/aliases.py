"""The alias tables: keys to hub ids.

``aliases.tsv`` has the names that mean one model, ``readings.csv`` those that need a reading: sizes, families,
nicknames and names that several models share.
"""

import csv
from functools import cache
from typing import NamedTuple

from estimator.catalogue.names import squeezed
from estimator.datafiles import read_text

FAMILY_REASONS = ("family", "newest", "company", "product", "nickname of", "smaller of the two")
"""Reasons of nicknames that chose among several models."""


class Known(NamedTuple):
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
def _plain() -> list[str]:
    """Lines of the table of plain names: hub id, kind and names between bars."""
    return read_text("aliases.tsv").replace("\t", "\t|").replace("\n", "|\n").splitlines()[1:]


@cache
def _squeezed() -> dict[str, Known]:
    """Every key without separators, which are taken out of the whole table at once."""
    found: dict[str, Known] = {}
    for line, bare in zip(_plain(), "\n".join(_plain()).translate(INSIDE_NAMES).split("\n"), strict=True):
        model_id, kind, _names = line.split("\t|")
        found.update(dict.fromkeys(bare.split("\t|")[2][:-1].split("|"), Known(model_id, kind)))
    return found | {squeezed(key): known for key, known in _readings().items()}


INSIDE_NAMES = str.maketrans("", "", " -_:/")
"""What ``squeezed`` drops of a name of the tables."""


def exact(key: str) -> Known | None:
    """What a normalised key means, None when it is not in the tables."""
    if (known := _readings().get(key)) is not None or squeezed(key) not in _squeezed():
        return known
    line = next((line for line in _plain() if f"|{key}|" in line), None)
    if line is None:
        return None
    model_id, kind, _names = line.split("\t|")
    return Known(model_id, kind)


def squeezed_key(key: str) -> Known | None:
    """What a key without separators means."""
    return _squeezed().get(key)


def all_squeezed() -> tuple[str, ...]:
    """Every key without separators."""
    return tuple(_squeezed())


def names() -> tuple[str, ...]:
    """Every name that means one model."""
    return tuple(name for line in _plain() for name in line.split("\t|")[2][:-1].split("|"))


def kin(model_id: str) -> set[str]:
    """The candidates of every family that ``model_id`` stands for."""
    found = (known.candidates for known in _readings().values() if known.type == "family" and known.id == model_id)
    return {candidate for candidates in found for candidate in candidates}


def sizes() -> list[str]:
    """The bare sizes that have a stand-in."""
    return [name for name, known in _readings().items() if known.type == "size" and ":" not in name]
