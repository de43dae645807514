"""What each tool calls things: its keys, defaults and known names, read from the packaged tables."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tomli

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool's table. ``keys`` maps a key to a fact, ``defaults`` conditions to facts, ``known`` are all its keys."""

    name: str
    framework: str = ""
    engine: str = ""
    version: str = ""
    task: str = ""
    precision: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, dict[str, Any]] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    no_defaults: tuple[str, ...] = ()
    loose: bool = False
    nested: bool = False
    python: bool = False
    completions: bool = False
    visible_ranks: bool = False

    def fact(self, key: str) -> str | None:
        """The fact that a key states; "" for a key without influence on memory, None for one that is not the tool's."""
        key = key.replace("-", "_")
        if key in self.keys:
            return self.keys[key]
        last = key.rsplit(".", 1)[-1]
        if self.loose and last in self.keys:
            return self.keys[last]
        return "" if last in self.known or key in self.known else None


@cache
def tool(name: str) -> Tool:
    """A tool by its name, what it includes laid under it. Raises KeyError."""
    raw = _raw()[name]
    whole = {**_inherited(raw), **raw}
    return Tool(
        keys=_keys(raw),
        defaults=_defaults(raw),
        known=frozenset(word for one in raw.get("known", []) for word in known(one)),
        **_plain(raw, whole),
    )


def _plain(raw: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {key: raw[key] for key in ("name", "framework", "engine", "version") if key in raw}
    shared: dict[str, Any] = {key: whole[key] for key in SHARED if key in whole}
    return {**own, **shared, **{key: tuple(whole.get(key, ())) for key in ("also", "open", "sections", "no_defaults")}}


SHARED = ("task", "precision", "loose", "nested", "python", "completions", "visible_ranks")
"""What a tool takes over from the one that it includes, unless it says otherwise."""


def _inherited(raw: dict[str, Any]) -> dict[str, Any]:
    base = _raw().get(raw.get("include", ""), {})
    return {**_inherited(base), **base} if base else {}


def _keys(raw: dict[str, Any]) -> dict[str, str]:
    inherited = _keys(_raw()[raw["include"]]) if "include" in raw else {}
    return {**inherited, **raw.get("keys", {})}


def _defaults(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Facts by condition; those without one are under ""."""
    inherited = _defaults(_raw()[raw["include"]]) if "include" in raw else {}
    own: dict[str, dict[str, Any]] = {"": {}}
    for name, value in raw.get("defaults", {}).items():
        own.setdefault(name if isinstance(value, dict) else "", {}).update(
            value if isinstance(value, dict) else {name: value}
        )
    dropped = raw.get("no_defaults", [])
    kept = {name: {key: one for key, one in facts.items() if key not in dropped} for name, facts in inherited.items()}
    return {name: {**kept.get(name, {}), **own.get(name, {})} for name in {*kept, *own}}


@cache
def _raw() -> dict[str, dict[str, Any]]:
    """Every table under its file's name and under its own."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((HERE / "tools").glob("*.toml")):
        table = tomli.loads(path.read_text("utf-8"))
        found[path.name.removesuffix(".toml")] = found[table["name"]] = table
    return found


@cache
def known(name: str) -> frozenset[str]:
    """All names of a tool's keys: a word each, lines with # are notes."""
    path = HERE / "data" / "known" / f"{name}.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


@cache
def words(section: str) -> dict[str, Any]:
    """A section of the dictionary of words."""
    found: dict[str, Any] = tomli.loads((HERE / "data" / "words.toml").read_text("utf-8"))[section]
    return found


@cache
def programs() -> dict[str, Any]:
    """The table of programs and launchers."""
    return tomli.loads((HERE / "data" / "programs.toml").read_text("utf-8"))


@cache
def fact_types() -> dict[str, list[str]]:
    """The facts of each type of value."""
    return tomli.loads((HERE / "data" / "facts.toml").read_text("utf-8"))
