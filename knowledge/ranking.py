"""Why a run went out of memory: the causes that the evidence speaks for, best first."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from knowledge.facts import Facts, holds
from knowledge.phrases import Text, phrase
from knowledge.reading import Entry, FixText, Guarded, causes
from knowledge.signals import Signal

MOST_CAUSES = 5
HALF = 4.0
"""Evidence of this weight makes a score of one half."""
LEAST = 0.2
ALONE = 0.4
"""Weaker evidence names a cause only for a text that speaks of memory."""
SPEAKING = ("{oom}", "{memory}", "allocat~", "# ?(g|gb|gib|mb|mib)", "{card}", "占满", "爆", "炸")


@dataclass(frozen=True, slots=True)
class Found:
    """An entry with what speaks for it."""

    entry: Entry
    score: float
    evidence: tuple[str, ...]


def ranked(text: Text, facts: Facts) -> list[Found]:
    """The causes that the text and the facts speak for, best first; none when nothing does."""
    found = [_weighed(entry, signals, text, facts) for entry, signals in _signals()]
    kept = sorted((one for one in found if one.score >= LEAST), key=lambda one: (-one.score, one.entry.id))
    told = kept and (kept[0].score >= ALONE or "format" in facts or _speaks_of_memory(text))
    return kept[:MOST_CAUSES] if told else []


def _speaks_of_memory(text: Text) -> bool:
    return any(phrase(words).found_in(text) for words in SPEAKING)


@cache
def _signals() -> tuple[tuple[Entry, tuple[Signal, ...]], ...]:
    """Every cause with its signals: all are compiled before a text is searched for any."""
    return tuple((entry, entry.evidence) for entry in causes())


def _weighed(entry: Entry, signals: tuple[Signal, ...], text: Text, facts: Facts) -> Found:
    weight, evidence = 0.0, []
    for signal in signals:
        told = signal.evidence(text, facts)
        if told is not None:
            weight += signal.weight
            evidence += told if signal.weight > 0 else []
    score = round(weight / (weight + HALF), 3) if weight > 0 else 0.0
    return Found(entry, score, tuple(dict.fromkeys(evidence)))


def fitting(texts: list[Guarded] | list[FixText], text: Text, facts: Facts) -> list[Any]:
    """The sentences of an entry that apply to this failure."""
    return [one for one in texts if _applies(one, text, facts)]


def _applies(told: Guarded, text: Text, facts: Facts) -> bool:
    said = not told.says or any(phrase(one).found_in(text) for one in told.says)
    return said and all(holds(one, facts) for one in told.facts)
