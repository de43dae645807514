"""Entries as they are written, and as they are used."""

import re
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import tomli
from pydantic import BaseModel, ConfigDict, Field

from knowledge.phrases import Phrase, phrase
from knowledge.signals import Signal, signal

Kind = Literal["cause", "faq", "claim", "gap", "rule", "glossary"]
LANGUAGES = ("en", "zh")
HEADINGS = {"en": "English", "zh": "中文"}
LABELS = {"confirm": ("Confirm:", "确认："), "ask": ("Ask:", "追问：")}
FRONT = re.compile(r"\+\+\+\n(.*?)\n\+\+\+\n(.*)", re.DOTALL)


class Said(BaseModel):
    """A text in both languages."""

    model_config = ConfigDict(extra="forbid")

    en: str
    zh: str

    def in_(self, lang: str) -> str:
        """The text in a language."""
        return self.zh if lang == "zh" else self.en


class Guarded(Said):
    """A sentence that is told only where all comparisons hold and, if phrases are given, one of them occurs."""

    facts: list[str] = []
    says: list[str] = []


class FixText(Guarded):
    """What helps: what it costs (0 a flag, 1 slower, 2 changes the training or quality, 3 more hardware).

    ``move`` names the change of the run, by which the service estimates the new peak.
    """

    id: str
    cost: int = Field(ge=0, le=3)
    move: str | None = None


class Body(BaseModel):
    """The text of an entry in one language."""

    text: str
    confirm: str = ""
    ask: str = ""


class Entry(BaseModel):
    """One entry; ``asks`` are phrases of questions that it answers, ``claims`` the numbers of the claims it judges.

    ``topics`` are lists of words.toml that occur together in such questions, in any order.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    kind: Kind
    title: Said
    phases: list[str] = []
    see: list[str] = []
    links: list[str] = []
    checked_on: str
    claims: list[int] = []
    asks: list[str] = []
    topics: list[list[str]] = []
    signals: list[dict[str, Any]] = []
    fixes: list[FixText] = []
    useless: list[Guarded] = []
    bodies: dict[str, Body]

    @cached_property
    def evidence(self) -> tuple[Signal, ...]:
        """The signals, compiled when a failure is first held against them."""
        return tuple(signal(row) for row in self.signals)

    @cached_property
    def questions(self) -> tuple[Phrase, ...]:
        """The phrases of questions, compiled when one is first asked."""
        return tuple(phrase(text) for text in self.asks)

    def body(self, lang: str) -> Body:
        """The text in a language."""
        return self.bodies[lang]


def parsed(text: str) -> Entry:
    """An entry from its file. Raises ValueError when a part is missing or unknown."""
    parts = FRONT.fullmatch(text)
    if not parts:
        raise ValueError("an entry begins with its front matter between lines of +++")
    bodies = {lang: _body(parts[2], lang) for lang in LANGUAGES}
    return Entry(**tomli.loads(parts[1]), bodies=bodies)


def _body(text: str, lang: str) -> Body:
    found = re.search(rf"^## {HEADINGS[lang]}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not found or not found[1].strip():
        raise ValueError(f"no text under the heading {HEADINGS[lang]}")
    paragraphs = [paragraph.strip() for paragraph in found[1].strip().split("\n\n")]
    labelled = {name: _labelled(paragraphs, labels[LANGUAGES.index(lang)]) for name, labels in LABELS.items()}
    plain = [
        one for one in paragraphs if not one.startswith(tuple(label for both in LABELS.values() for label in both))
    ]
    return Body(text="\n\n".join(plain), **labelled)


def _labelled(paragraphs: list[str], label: str) -> str:
    return next((one.removeprefix(label).strip() for one in paragraphs if one.startswith(label)), "")


@cache
def entries() -> dict[str, Entry]:
    """All entries by id, read once."""
    folder = files("knowledge.entries")
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".md"))
    found = [parsed(folder.joinpath(name).read_text("utf-8")) for name in names]
    return {entry.id: entry for entry in found}


@cache
def useless_anyway() -> list[Guarded]:
    """What does not help whatever the cause is."""
    rows = tomli.loads(files("knowledge").joinpath("useless.toml").read_text("utf-8"))["useless"]
    return [Guarded.model_validate(row) for row in rows]


@cache
def causes() -> tuple[Entry, ...]:
    """The entries that a diagnosis chooses from."""
    return tuple(entry for entry in entries().values() if entry.kind == "cause")
