"""Entries of one piece noted by one tool's table: flags of a command, keys of a file, a config written into either."""

import re
from typing import Any

from bot.reading.entries import Entry, Piece
from bot.reading.facts import FILE, OVERRIDE, Fact
from bot.reading.formats.json_text import loaded
from bot.reading.gathered import Assembled, name_unknown
from bot.reading.tables import Tool, tool

OF_DATA = re.compile(r"(?:^|_)(?:data|dataset|datasets|corpus|dir|path|paths|file|files|folder)(?:_|$)")
LAUNCHERS_OWN = frozenset(("config", "config_file", "local_rank", "help", "h", "version", "yaml"))


class Side:
    """Notes the entries of one piece by one tool's table."""

    def __init__(self, result: Assembled, found: Tool, rank: int) -> None:
        self.result, self.tool, self.rank = result, found, rank
        self.tables = [found, *(tool(name) for name in found.also)]

    def note(self, entry: Entry) -> bool:
        """Note an entry by the first table that knows its key; False when none does."""
        for table in self.tables:
            spec = table.fact(entry.key)
            if spec is None:
                continue
            if spec:
                self.result.facts.note(spec, entry, self.rank, table.name)
            return True
        return False

    def flag(self, entry: Entry, piece: Piece) -> None:
        """A flag: a switch that swallowed a free word gives it back; JSON is opened; ``--no-x`` is x off."""
        spec = self.tool.fact(entry.key) or ""
        if isinstance(entry.value, list) and spec not in (
            "targets",
            "attn_modules",
            "loss_type",
            "fsdp",
            "tensor_split",
        ):
            entry = Entry(entry.key, entry.value[0], entry.line, entry.written)
        if spec == "speculative":
            _speculative(self.result, entry)
        elif spec == "deepspeed" and isinstance(entry.value, str) and entry.value.lstrip().startswith("{"):
            note_inline(self.result, entry)
        elif (
            entry.key.startswith("no_")
            and self.tool.fact(entry.key) is None
            and self.tool.fact(entry.key[3:]) is not None
        ):
            self.note(Entry(entry.key[3:], False, entry.line, entry.written))
        elif not self.note(entry) and not self._is_of_no_matter(entry, piece):
            name_unknown(self.result, entry.written or entry.key)

    def file(self, entry: Entry) -> None:
        """A key of a file: the top ones and those in sections that the tool checks are named when unknown."""
        if isinstance(entry.value, dict) and self.tool.keys.get(entry.key) == "deepspeed":
            note_inline(self.result, entry)
            return
        known = self.note(entry)
        if not known and self._is_checked(entry):
            name_unknown(self.result, entry.key)

    def _is_of_no_matter(self, entry: Entry, piece: Piece) -> bool:
        """Whether an unknown flag is a launcher's, of a section that takes any key, or names a script's own data."""
        section, dot, _ = entry.key.partition(".")
        own = piece.program.endswith(".py") and OF_DATA.search(entry.key) is not None
        return entry.key in LAUNCHERS_OWN or own or (bool(dot) and section in self.tool.open)

    def _is_checked(self, entry: Entry) -> bool:
        if "[" in entry.key:
            return False
        section, dot, _ = entry.key.partition(".")
        if not dot:
            return section not in self.tool.open
        if section in self.tool.open or entry.key.count(".") > 1:
            return False
        return self.tool.nested or section in self.tool.sections


def _speculative(result: Assembled, entry: Entry) -> None:
    """VLLM's speculative config: JSON with the draft model."""
    value = entry.value
    if isinstance(value, str):
        try:
            value = loaded(value)
        except ValueError:
            return
    if isinstance(value, dict) and isinstance(value.get("model"), str):
        result.facts.put("draft_model", Fact(value["model"], entry.name, entry.line, OVERRIDE, "vllm"))


def note_inline(result: Assembled, entry: Entry) -> None:
    """A DeepSpeed config written into another file or flag."""
    value: Any = entry.value
    if isinstance(value, str):
        try:
            value = loaded(value)
        except ValueError:
            return
    table = tool("deepspeed")
    for path, inner in _paths(value, ""):
        spec = table.keys.get(path)
        if spec:
            result.facts.note(spec, Entry(path, inner, entry.line, f"{entry.name}.{path}"), FILE, table.name)
    result.facts.put("deepspeed", Fact(True, entry.name, entry.line, FILE, "deepspeed"))


def _paths(value: Any, prefix: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return []
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        found += [(path, inner), *_paths(inner, path)]
    return found
