"""Facts about a failure by name, and comparisons of them that can be written in an entry.

A comparison is ``name sign term`` with the signs ``= != > >= < <= ~`` (``~``: within 3 %), a term being a number with
or without a unit, a word, a name, or a number times a name: ``unused_cache >= tried``, ``outside > 1.5 GiB``,
``phase = load``, ``tried > 0.5 * total``. ``has name`` and ``no name`` ask whether a fact is known. An unknown fact
fails any comparison but ``!=``.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from knowledge.logs.sizes import UNITS

GIB, MIB, KIB = 2**30, 2**20, 2**10
NEAR = 0.03

COMPARISON = re.compile(r"(\w+) *(>=|<=|!=|=|>|<|~) *(.+)")
TERM = re.compile(r"(?:(?P<times>[\d.]+) *\* *)?(?:(?P<number>[\d.]+) *(?P<unit>[KMGT]?i?B)?$|(?P<word>[\w.+-]+)$)")


def _near(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= NEAR * abs(b))


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq, "!=": operator.ne,
    "~": _near,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """Values by name, and for each number of bytes the place in an answer that it was taken from."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def get(self, name: str) -> Any:
        """The value, None when it is not known."""
        return self.values.get(name)


def holds(comparison: str, facts: Facts) -> bool:
    """Whether a comparison is true; what is unknown is not."""
    kind, _, name = comparison.partition(" ")
    if kind in ("has", "no"):
        return (name in facts) == (kind == "has")
    name, sign, times, term = _parts(comparison)
    left, right = facts.get(name), _valued(times, term, facts)
    if left is None or right is None or isinstance(left, str) != isinstance(right, str):
        return sign == "!="
    return bool(SIGNS[sign](left, right))


def names_in(comparison: str) -> list[str]:
    """The names of facts that a comparison may speak of; a word on the right may be a plain word."""
    kind, _, name = comparison.partition(" ")
    return [name if kind in ("has", "no") else _parts(comparison)[0]]


@cache
def _parts(comparison: str) -> tuple[str, str, float, float | str]:
    """Name, sign, and the factor of a term that is a number or a word. Raises ValueError for anything else."""
    parts = COMPARISON.fullmatch(comparison)
    if not parts:
        raise ValueError(f"not a comparison: {comparison}")
    term = TERM.match(parts[3].strip())
    if not term:
        raise ValueError(f"not a term: {parts[3]}")
    times = float(term["times"] or 1)
    if not term["number"]:
        return parts[1], parts[2], times, str(term["word"])
    return parts[1], parts[2], times, float(term["number"]) * (UNITS[term["unit"].lower()] if term["unit"] else 1)


def _valued(times: float, term: float | str, facts: Facts) -> Any:
    value = facts.get(term) if isinstance(term, str) and term in facts.values else term
    return times * value if isinstance(value, int | float) and not isinstance(value, bool) else value


def told(comparison: str, facts: Facts) -> str:
    """The comparison with its figures: ``unused_cache 2.69 GiB >= tried 2.00 GiB``."""
    parts = COMPARISON.fullmatch(comparison)
    if not parts:
        return comparison
    right = parts[3]
    names = [name for name in re.findall(r"[a-z_]\w+", right) if name in facts]
    return " ".join([_shown(parts[1], facts), parts[2], *([_shown(names[0], facts)] if names else [right])])


def _shown(name: str, facts: Facts) -> str:
    value = facts.get(name)
    return f"{name} {size_told(value)}" if name in facts.sources and isinstance(value, int) else f"{name} {value}"


def size_told(size: float) -> str:
    """Bytes in GiB, small ones in MiB or KiB."""
    if abs(size) >= 0.1 * GIB or not size:
        return f"{size / GIB:.2f} GiB"
    return f"{size / MIB:.0f} MiB" if abs(size) >= MIB else f"{size / KIB:.0f} KiB"
