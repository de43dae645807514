"""The entry that answers a question: by its topics, its own phrases, else by full-text search, else none."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from typing import TYPE_CHECKING, Any

from knowledge.facts import Facts
from knowledge.grammar import shared_words
from knowledge.phrases import Phrase, Text, phrase
from knowledge.ranking import ranked
from knowledge.reading import Entry, entries

if TYPE_CHECKING:
    import sqlite_utils

LONGEST_QUESTION = 1000
LATIN = re.compile(r"[a-z][a-z0-9+.-]{2,}")
CHINESE = re.compile(r"[\u3400-\u9fff]{3,}")
COVERED = 0.6
"""An entry is near when it holds this share of the question's words."""
CLEAR = 0.52
"""Score from which a cause is told to a question that names no run."""
FEWEST = 2
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Near:
    """An entry found for a question; ``sure`` when one of its own phrases occurs."""

    entry: Entry
    sure: bool


def answering(text: str) -> Near | None:
    """The entry that answers a question; None when none is near."""
    if asked := asked_for(text):
        return Near(asked, True)
    found = nearest(text)
    return Near(found, False) if found else None


def asked_for(text: str) -> Entry | None:
    """The entry whose own topics or phrases a question holds; None where none are."""
    question = _as_text(text)
    return _by_topic(question) or _by_phrase(question)


def says(name: str, text: str) -> bool:
    """Whether any of the words of a list occurs."""
    return bool(phrase(f"{{{name}}}").found_in(_as_text(text)))


def nearest(text: str) -> Entry | None:
    """The entry that holds most of a question's words; None where none does."""
    return next(iter(searched(_as_text(text).lowered)), None)


def likeliest(text: str, known: Mapping[str, Any]) -> Entry | None:
    """The cause that the words of a question speak for, and what is known of its model, where they clearly do."""
    found = ranked(_as_text(text), Facts(known, {}))
    return found[0].entry if found and found[0].score >= CLEAR else None


def _as_text(question: str) -> Text:
    return Text(" ".join(question[:LONGEST_QUESTION].lower().split()))


def _by_topic(text: Text) -> Entry | None:
    """The entry whose topics a question brings together, told by those that few entries share; None where none does."""
    spoken = {name for name in _rarity() if phrase(f"{{{name}}}").found_in(text)}
    best, most = None, 0.0
    for entry, rows in _topics():
        weight = sum(_rarity()[name] for name in frozenset().union(*(row for row in rows if row <= spoken)))
        if weight > most:
            best, most = entry, weight
    return best


@cache
def _topics() -> tuple[tuple[Entry, tuple[frozenset[str], ...]], ...]:
    """The entries with topics, and each set of them that must be spoken of together."""
    return tuple((entry, tuple(map(frozenset, entry.topics))) for entry in entries().values() if entry.topics)


@cache
def _rarity() -> dict[str, float]:
    """For each topic how few entries have it."""
    held = [frozenset().union(*rows) for _, rows in _topics()]
    names = sorted(frozenset().union(*held))
    return {name: log(1 + len(held) / sum(name in one for one in held)) for name in names}


def _by_phrase(text: Text) -> Entry | None:
    """The entry whose phrases take up most of the question."""
    best, longest = None, 0
    for entry, phrases in _questions():
        taken = sum(len(one.found_in(text)) for one in phrases if text.may_hold(one))
        if taken > longest:
            best, longest = entry, taken
    return best


@cache
def _questions() -> tuple[tuple[Entry, tuple[Phrase, ...]], ...]:
    """The entries with phrases of questions that they answer."""
    return tuple((entry, entry.questions) for entry in entries().values() if entry.questions)


def searched(text: str) -> list[Entry]:
    """Entries that hold most of the question's words, the nearest first; empty when none does."""
    words = _words(text)
    if len(words) < FEWEST:
        return []
    quoted = " OR ".join(f'"{word}"' for word in words)
    rows = _index().search(quoted, quote=False, limit=12)
    near = [str(row["id"]) for row in rows if _coverage(words, str(row["words"])) >= COVERED]
    return [entries()[one] for one in dict.fromkeys(near)][:MOST_SHOWN]


def _words(text: str) -> list[str]:
    """The words of a question that mean something; Chinese in pieces of three characters, as it is indexed."""
    lowered, stop = text.lower(), shared_words()["stop"]
    latin = [word for word in LATIN.findall(lowered) if word not in stop]
    runs = CHINESE.findall(lowered)
    return list(dict.fromkeys(latin + [run[at : at + 3] for run in runs for at in range(len(run) - 2)]))


def _coverage(words: list[str], held: str) -> float:
    return sum(word in held for word in words) / len(words)


@cache
def _index() -> "sqlite_utils.db.Table":
    """All entries in memory, each language a row, with an index of three characters that serves Chinese and Latin."""
    import sqlite3  # only questions that match no phrase need it

    import sqlite_utils

    # built once, then only read, by whichever thread answers
    database = sqlite_utils.Database(sqlite3.connect(":memory:", check_same_thread=False))
    rows = [{"id": entry.id, "words": _held(entry, lang)} for entry in entries().values() for lang in entry.bodies]
    table = database.table("entry")
    table.insert_all(rows)
    table.enable_fts(["words"], tokenize="trigram")
    return table


def _held(entry: Entry, lang: str) -> str:
    body = entry.body(lang)
    fixes = " ".join(fix.in_(lang) for fix in entry.fixes)
    return " ".join((entry.id.replace("_", " "), entry.title.in_(lang), body.text, body.confirm, fixes)).lower()
