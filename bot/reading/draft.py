"""The run being put together: facts in, fields with their origins out."""

from dataclasses import dataclass, field
from typing import Any

from bot.reading.facts import DEFAULT, NAMED, Fact, Facts
from bot.reading.tables import Tool
from bot.texts import say


@dataclass(slots=True)
class Draft:
    """``run`` and ``origins`` have dotted names; ``calls`` are a script's, ``identified`` what showed the tool."""

    facts: Facts
    tool: Tool
    run: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    clashes: list[tuple[tuple[str, ...], str, dict[str, Any]]] = field(default_factory=list)
    calls: frozenset[str] = frozenset()
    conditions: set[str] = field(default_factory=set)
    identified: str = ""
    unseen: str = ""

    def put(self, name: str, value: Any, *origins: Fact | str | None) -> None:
        """Set a field, with what it was read from; a field without a value is left."""
        if value is None:
            return
        self.run[name] = value
        told = [one.origin if isinstance(one, Fact) else one for one in origins if one]
        self.origins[name] = " + ".join(dict.fromkeys(told)) or "default"

    def copy(self, name: str, *facts: str) -> None:
        """Set a field to the fact in force, if there is one."""
        found = self.facts.best(*facts)
        if found:
            self.put(name, found.value, found)

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.facts.get(name) is True

    def has(self, condition: str) -> None:
        """Lay the tool's defaults for a condition under what is stated."""
        if condition in self.conditions:
            return
        self.conditions.add(condition)
        if self.unseen and condition != "quantised":  # the file that is not here may say otherwise
            return
        for name, value in self.tool.defaults.get(condition, {}).items():
            own = self.facts.found.get(name)
            if own and all(one.rank == DEFAULT for one in own) and condition:
                del self.facts.found[name]
            self.facts.lay_under(name, value, self.tool)

    def default(self, text: str) -> str:
        """The origin of a value that is the tool's own."""
        return f"default of {self.tool.name} {self.tool.version}: {text}".replace("  ", " ")

    def clash(self, why: str, *keys: str, **values: Any) -> None:
        """Name a contradiction: the key of its sentence, the keys that take part, and the sentence's values."""
        self.clashes.append((keys, why, values))

    def clashes_in(self, lang: str) -> list[str]:
        """The contradictions as sentences of a language."""
        told = (f"{' / '.join(keys)}: {say(lang, f'clash.{why}', **values)}" for keys, why, values in self.clashes)
        return list(dict.fromkeys(told))

    def named(self, *names: str) -> bool:
        """Whether something is stated under one of the names."""
        return any(one.rank >= NAMED for name in names for one in self.facts.found.get(name, ()))
