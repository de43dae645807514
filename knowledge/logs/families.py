"""The ways in which programs say that memory ran out, and whether a text is what a program printed."""

import re
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import tomli

FIELD = r"<(?:(\w+):)?(size|signed|gb|bytes|int|float)>"
FORMS = {
    "size": r"(?<!\d\. )(?<![\d.])(?P<{0}>\d[\d,]*\.?\d*) ?(?P<{0}_unit>(?:[KMGTkmgt]i?)?[Bb](?:ytes)?\b|[KMGTkmgt]\b)",
    "signed": r"(?P<{0}>-?\d[\d,]*\.?\d*) ?(?P<{0}_unit>[KMGT]i?B)",
    "gb": r"(?P<{0}_gb>\d+\.?\d*) ?GB",
    "bytes": r"(?P<{0}>\d[\d,]*)(?: ?(?P<{0}_unit>[KMG]i?B))?",
    "int": r"(?P<{0}_int>\d[\d,]*)",
    "float": r"(?P<{0}_float>\d+\.?\d*)",
}
SPOKEN = ("no_numbers", "kernel", "shm", "host", "torch_piece", "cublas")
"""Families whose words people also use in questions."""
PRINTED = (
    r"(?m)\w(?:Error|Exception)\b|\b[Ee]rror:|^\s*File \"|\bkilled by signal|received by PID|total-vm|oom-killer:"
    r"|exit(?:ed with)? ?code:? -?\d|terminate called|slurmstepd|or sacrifice child|ErrorOutOfMemory in function"
    r"|: +\d+ Killed +\S"
)


class Family:
    """One way in which programs say that memory ran out; ``marks`` are searched first, in lower case.

    Patterns are compiled when a text first holds one of the marks: most texts hold those of few.
    """

    def __init__(self, row: dict[str, Any]) -> None:
        self.name: str = row["name"]
        self.marks: tuple[str, ...] = tuple(row["marks"])
        self.reach: int = row["reach"]
        self.backend: str | None = row.get("backend")
        self.is_error: bool = row.get("is_error", bool(row["formats"]))
        self._row = row

    @cached_property
    def start(self) -> re.Pattern[str]:
        """Where a message begins."""
        return re.compile(self._row["start"])

    @cached_property
    def formats(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """The names of its formats with what tells each."""
        return tuple((name, re.compile(pattern)) for name, pattern in self._row["formats"])

    @cached_property
    def fields(self) -> tuple[re.Pattern[str], ...]:
        """Its numbers, as named groups."""
        return tuple(re.compile(_spelled_out(one)) for one in self._row["fields"])

    @cached_property
    def sums(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """Numbers that are added up."""
        return tuple((name, re.compile(_spelled_out(one))) for name, one in self._row.get("sums", ()))

    @property
    def names(self) -> frozenset[str]:
        """The names of the numbers that it may state."""
        groups = (name for pattern in self.fields for name in pattern.groupindex)
        plain = {re.sub(r"_(?:unit|int|float|gb|g)$", "", name) for name in groups}
        return frozenset(plain | {name for name, _ in self.sums} | {"format", "backend"})

    def occurs(self, lowered: str) -> bool:
        """Whether any of the family's words occur."""
        return any(mark in lowered for mark in self.marks)


@cache
def families() -> tuple[Family, ...]:
    """All families in the order in which they win."""
    rows = tomli.loads(files("knowledge.logs").joinpath("families.toml").read_text("utf-8"))["family"]
    return tuple(Family(row) for row in rows)


def _spelled_out(pattern: str) -> str:
    return re.sub(FIELD, lambda one: FORMS[one[2]].format(one[1] or "value"), pattern)


def is_log(text: str) -> bool:
    """Whether a text holds an error as a program prints it, or a traceback; a question that names one holds neither."""
    lowered = " ".join(text[-40_000:].lower().split())
    if "traceback (most recent call last)" in lowered:
        return True
    named = [family.name for family in families() if family.is_error and family.occurs(lowered)]
    return any(name not in SPOKEN for name in named) or (bool(named) and re.search(PRINTED, text) is not None)
