"""In which phase of a run memory ran out."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from knowledge.phrases import Phrase, Text, phrase

TRACEBACK = re.compile(r'traceback \(most recent call last\)|file "[^"]{1,300}", line \d+')
STEPS = re.compile(r"\d{1,3}%\|[^|\n]{0,200}\| *(\d+)/(\d+) \[\d")
TAIL = 30_000
MOST_SHARDS = 200
"""Checkpoints come in up to about so many files, whose bar looks as that of training does."""

PASSES = ("forward", "backward", "loss", "unknown")
"""Phases of every step: one that failed only after others had gone well failed because something changed since."""


@cache
def _table() -> dict[str, Any]:
    return tomli.loads(files("knowledge.logs").joinpath("phases.toml").read_text("utf-8"))


@cache
def _rows() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The phases in the order in which they are tried, with their frames."""
    return tuple((row["name"], tuple(row["frames"])) for row in _table()["phase"])


@cache
def _phrases(name: str) -> tuple[Phrase, ...]:
    """The words of a phase; those that say that it came late are called "later"."""
    rows = {row["name"]: row["words"] for row in _table()["phase"]} | {"later": _table()["later"]}
    return tuple(phrase(text) for text in rows[name])


def phases() -> frozenset[str]:
    """The names of all phases."""
    return frozenset(name for name, _ in _rows()) | {"after_steps", "unknown"}


def phase_of(text: Text, done: int | None = None) -> str:
    """The phase, from the frames of a traceback first, then from words; ``done`` steps went well before."""
    named = _by_frames(text.lowered) or next((name for name, _ in _rows() if _said(name, text)), "unknown")
    if named in PASSES and ((done or 0) > 1 or _said("later", text)):
        return "after_steps"
    return named


def _by_frames(lowered: str) -> str | None:
    found = TRACEBACK.search(lowered)
    if not found:
        return None
    frames = lowered[found.start() :]
    return next((name for name, signs in _rows() if any(sign in frames for sign in signs)), None)


def _said(name: str, text: Text) -> bool:
    return any(one.found_in(text) for one in _phrases(name))


def steps_done(text: str) -> int | None:
    """Steps that a progress bar of training had counted before the end; those of loading have no thousands."""
    tail = text[-TAIL:]
    at = tail.rfind("%|")
    while at >= 0:
        found = STEPS.match(tail, max(0, at - 3)) or STEPS.match(tail, max(0, at - 2)) or STEPS.match(tail, at - 1)
        if found and int(found[2]) > MOST_SHARDS:
            return int(found[1])
        at = tail.rfind("%|", 0, at)
    return None
