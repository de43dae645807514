"""What a paste states, under names that all tools share: the value, where it stands, and what disagrees with it."""

from dataclasses import dataclass, field
from typing import Any

from bot.reading.entries import Entry
from bot.reading.scalars import is_open, number, switch, whole, words_of
from bot.reading.tables import Tool, fact_types

_TYPES = fact_types()
COUNTS, SIGNED, SHARES, FLOATS, SWITCHES = (
    frozenset(_TYPES[name]) for name in ("counts", "signed", "shares", "floats", "switches")
)
OPEN_AUTO = frozenset({"bf16", "optimizer", "fsdp_version"})
"""Facts for which "auto" is a value."""
LEFT_OPEN = frozenset({"procs_per_node"})
"""Facts whose default does not hold where "auto" is given: as many devices as there are."""
OVERRIDE, FILE, NAMED, DEFAULT = 3, 2, 1, 0
LARGEST = 10**13


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its origin; ``rank`` says how directly it is stated, ``source`` by which part of the paste."""

    value: Any
    key: str
    line: int
    rank: int
    source: str

    @property
    def origin(self) -> str:
        """Where it comes from, as one reads it."""
        if self.rank == DEFAULT:
            return f"default of {self.source}: {self.key}"
        return f"{self.key} (line {self.line})" if self.line else self.key


@dataclass(slots=True)
class Facts:
    """All facts of a paste. Of several for one name the most direct, then the last, is in force.

    ``open`` are those that the paste leaves to the machine.
    """

    found: dict[str, list[Fact]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    invalid: list[tuple[str, Fact]] = field(default_factory=list)

    def put(self, name: str, fact: Fact) -> None:
        """Add a fact."""
        self.found.setdefault(name, []).append(fact)

    def note(self, spec: str, entry: Entry, rank: int, source: str) -> None:
        """Add what a key states: "fact", "fact=value" for a switch that means one value, "!fact" for its opposite."""
        name, given, value = spec.partition("=")
        if given:
            if switch(entry.value) is not False and entry.value is not None:
                self.put(name, Fact(value, entry.name, entry.line, rank, source))
            return
        if isinstance(entry.value, dict):
            return
        negated = name.startswith("!")
        name = name.lstrip("!")
        meant = typed(name, entry.value)
        fact = Fact(meant, entry.name, entry.line, rank, source)
        if meant is None:
            if name in LEFT_OPEN and str(entry.value).lower() == "auto":
                self.open.add(name)
            if not is_open(entry.value) and is_impossible(name, entry.value):
                self.invalid.append((name, Fact(entry.value, entry.name, entry.line, rank, source)))
            return
        if negated:
            on = switch(meant)
            fact = Fact(not on, entry.name, entry.line, rank, source) if on is not None else fact
        self.put(name, fact)

    def best(self, *names: str) -> Fact | None:
        """The fact in force under the first of the names that has one; stated ones come before defaults."""
        for least in (NAMED, DEFAULT):
            for name in names:
                known = [one for one in self.found.get(name, ()) if one.rank >= least]
                if known:
                    return max(enumerate(known), key=lambda one: (one[1].rank, one[0]))[1]
        return None

    def stated(self, *names: str) -> Fact | None:
        """Like ``best``, defaults left out."""
        found = self.best(*names)
        return found if found and found.rank > DEFAULT else None

    def get(self, *names: str) -> Any:
        """The value in force; None without one."""
        found = self.best(*names)
        return found.value if found else None

    def lay_under(self, name: str, value: Any, tool: Tool) -> None:
        """A default of the tool, for what nothing states."""
        if name not in self.found and name not in self.open:
            key = next((key for key, fact in tool.keys.items() if fact.split("=")[0].lstrip("!") == name), name)
            self.put(name, Fact(value, key, 0, DEFAULT, f"{tool.name} {tool.version}"))


def typed(name: str, value: Any) -> Any:
    """The value in the type of its fact; None where it fixes nothing or does not fit."""
    if is_open(value) and not (name in OPEN_AUTO and value not in (None, "")):
        return None
    if name == "gpu_layers" and str(value).lower() == "all":
        return -1
    if name in COUNTS or name in SIGNED:
        exact = whole(value)
        low = 1 if name in COUNTS else -1
        return (
            exact if exact is not None and low <= exact <= 10**9 * (10**6 if name == "bucket_elements" else 1) else None
        )
    if name in SHARES:
        share = number(value)
        return share if share is not None and 0 < share <= 1 else None
    if name in FLOATS:
        return _number(name, value)
    if name in SWITCHES:
        return switch(value)
    if name in ("targets", "attn_modules", "plugins", "converters", "visible", "fsdp"):
        return value if isinstance(value, (bool, str, int)) else words_of(value)
    return value


def _number(name: str, value: Any) -> float | None:
    exact = number(value)
    if exact is None or exact < 0 or (name == "dropout" and exact >= 1):
        return None
    return exact


def is_impossible(name: str, value: Any) -> bool:
    """Whether a value of a number is one that no run can have, rather than one of another kind."""
    return name in COUNTS | SIGNED | SHARES | FLOATS and not isinstance(value, (dict, list))
