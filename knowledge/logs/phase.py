"""In which phase of a run memory ran out."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

TRACEBACK = re.compile(r'traceback \(most recent call last\)|file "[^"]{1,300}", line \d+')
STEPS = re.compile(r"\d{1,3}%\|[^|\n]{0,200}\| *(\d+)/(\d+) \[\d")
LATER = re.compile(
    r"after (?:a few|several|some|about|around|~|\d|hundreds|thousands|many|an? (?:while|hour|epoch))[^.\n]{0,40}"
    r"|(?:second|2nd|third|3rd|step [2-9]|step \d\d+|epoch [1-9]|a later) (?:step|iteration|epoch|batch)"
    r"|第 ?[二三四2-9十百] ?(?:步|个step|轮|个epoch)|[几多数]\w{0,3}(?:步|轮|个epoch)后|训练中途|跑着跑着|训练一段时间|过一会|一段时间后"
    r"|over time|keeps (?:growing|increasing|climbing)|each (?:loop|iteration|step) a bit more|mid-?training"
)

TAIL = 30_000
MOST_SHARDS = 200
"""Checkpoints come in up to about so many files, whose bar looks as that of training does."""


@cache
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(files("knowledge.logs").joinpath("phases.toml").read_text("utf-8"))["phase"]
    return rows


def phase_of(lowered: str, done: int | None = None) -> str:
    """The phase, from the frames of a traceback first, then from words; ``done`` is the number of steps that went well."""
    found = TRACEBACK.search(lowered)
    if found:
        frames = lowered[found.start() :]
        named = next((row["name"] for row in _rows() if any(sign in frames for sign in row["frames"])), None)
        if named:
            return _with_time(str(named), lowered, done)
    named = next((row["name"] for row in _rows() if any(sign in lowered for sign in row["words"])), None)
    return _with_time(str(named or "unknown"), lowered, done)


def steps_done(text: str) -> int | None:
    """Steps that a progress bar of training had counted before the end; those of loading have no thousands."""
    counts = [int(one[1]) for one in STEPS.finditer(text[-TAIL:]) if int(one[2]) > MOST_SHARDS]
    return counts[-1] if counts else None


def _with_time(phase: str, lowered: str, done: int | None) -> str:
    """A pass that failed only after others had gone well fails because something changed since."""
    if phase not in ("forward", "backward", "loss", "unknown"):
        return phase
    return "after_steps" if (done or 0) > 1 or LATER.search(lowered) else phase
