"""Pieces to facts: each piece by the table of its tool, what no table knows is kept by name."""

import re
from dataclasses import dataclass, field
from typing import Any

from bot.reading.commands import program_of
from bot.reading.detect import is_adapter_config, is_hub_config, tool_of_keys
from bot.reading.entries import Entry, Piece
from bot.reading.facts import DEFAULT, FILE, OVERRIDE, SWITCHES, Fact, Facts
from bot.reading.formats.json_text import loaded
from bot.reading.hub import note_adapter_config, note_hub_config
from bot.reading.named import note_named_files, note_recipe
from bot.reading.scalars import is_open, switch
from bot.reading.scripts import script_tool, scripted
from bot.reading.tables import Tool, tool

SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)
MOST_UNKNOWN = 100
LONGEST_NAME = 100


@dataclass(slots=True)
class Assembled:
    """All facts of a paste, the tool that runs, what identified it, and the keys that nobody knows."""

    facts: Facts = field(default_factory=Facts)
    tool: Tool | None = None
    identified: str = ""
    unknown: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    task: str = ""
    unseen: str = ""
    repeated: list[tuple[str, str, str]] = field(default_factory=list)


def assembled(pieces: list[Piece]) -> Assembled:
    """The facts of all pieces."""
    result = Assembled()
    for piece in pieces:
        _repeated(result, piece)
        if piece.form == "command":
            _command(result, piece)
        elif piece.form == "python":
            _script(result, piece)
        elif piece.form == "environment":
            _environment(result, piece)
        elif piece.form != "prose":
            _file(result, piece)
    result.unseen = _unseen(pieces, result)
    note_named_files(result.facts, result.tool, _has_deepspeed(pieces))
    return result


def _repeated(result: Assembled, piece: Piece) -> None:
    """Keys of a file or flags of a command that are given twice with different values."""
    if piece.form in ("python", "prose"):
        return
    seen: dict[str, Entry] = {}
    for entry in piece.entries:
        before = seen.setdefault(entry.key, entry)
        plain = not isinstance(entry.value, (dict, list)) and entry.key not in REPEATABLE and "[" not in entry.key
        if before is not entry and before.value != entry.value and plain:
            told = ("…", "…") if SECRET.search(entry.key) else (str(before.value)[:40], str(entry.value)[:40])
            result.repeated.append((entry.name, *told))
        seen[entry.key] = entry


REPEATABLE = frozenset(("ot", "override_tensor", "lora", "lora_modules", "stop", "override_kv", "v", "e"))
LAUNCHERS_OWN = frozenset(("config", "config_file", "local_rank", "help", "h", "version", "yaml"))


def _unseen(pieces: list[Piece], result: Assembled) -> str:
    """The tool's own config file that a command names while the paste holds none: its values are not known."""
    if any(piece.form in ("yaml", "toml", "json") for piece in pieces):
        return ""
    for piece in pieces:
        named = [*piece.words, *(str(one.value) for one in piece.entries if one.key in NAMING)]
        found = next((word for word in named if word.endswith(CONFIG_ENDINGS)), "")
        if found and piece.form == "command":
            return found[:LONGEST_NAME]
    return ""


NAMING = ("config", "yaml", "config_file", "$CONFIG_FILE")
CONFIG_ENDINGS = (".yaml", ".yml", ".toml", ".json")


def _has_deepspeed(pieces: list[Piece]) -> bool:
    """Whether DeepSpeed's own file is in the paste."""
    return any(one.key == "zero_optimization" for piece in pieces for one in piece.entries)


def _take(result: Assembled, found: Tool, how: str) -> None:
    """The first tool that trains or serves is the run's; a bare launcher or DeepSpeed's file gives way to it."""
    own = bool(found.framework or found.engine or found.python)
    current = result.tool
    if current is None or (own and not (current.framework or current.engine or current.python)):
        result.tool, result.identified = found, how


def _command(result: Assembled, piece: Piece) -> None:
    row = program_of(piece)
    found = tool(row["tool"]) if "tool" in row else tool_of_keys(piece)
    for launcher in piece.launchers:
        _launcher(result, launcher)
    _environment(result, piece)
    if found is None:
        return
    how = f"{piece.program.removeprefix('image:')} (line {piece.line})" if "tool" in row else _keys(piece)
    _take(result, found, how)
    for name, value in row.get("facts", {}).items():
        default = name.startswith("default.")
        fact = Fact(
            value,
            "the program" if default else piece.program,
            0 if default else piece.line,
            DEFAULT if default else FILE,
            found.name,
        )
        _program_fact(result, name.removeprefix("default."), fact)
    _give_back(piece, found)
    _free_words(result, piece, row, found)
    _flags(result, piece, found)
    _distributed(result, piece)


def _program_fact(result: Assembled, name: str, fact: Fact) -> None:
    if name == "task":
        result.task = str(fact.value)
        return
    result.facts.put(name, fact)


def _keys(piece: Piece) -> str:
    names = [one.name for one in piece.entries if not one.key.startswith("$")][:3]
    return f"keys {', '.join(names)} (line {piece.line})"


def _launcher(result: Assembled, launcher: Piece) -> None:
    table = tool("accelerate" if launcher.program == "accelerate" else "torchrun")
    side = _Side(result, table, OVERRIDE)
    for entry in launcher.entries:
        side.note(entry)
        if entry.key == "config_file" and launcher.program == "accelerate":
            result.facts.put("accelerate_file", Fact(str(entry.value), entry.name, entry.line, FILE, table.name))
    if launcher.program == "accelerate":
        _take(result, table, f"accelerate launch (line {launcher.line})")


def _environment(result: Assembled, piece: Piece) -> None:
    """Variables that launchers and engines read."""
    table = tool("environment")
    for entry in piece.entries:
        spec = (
            table.keys.get(entry.key.removeprefix("$"))
            if entry.key.startswith("$") or piece.form == "environment"
            else None
        )
        if spec:
            result.facts.note(spec, entry, OVERRIDE, table.name)
        if spec and entry.key.startswith("$OLLAMA") and result.tool is None:
            _take(result, tool("ollama"), f"{entry.name} (line {entry.line})")


def _give_back(piece: Piece, found: Tool) -> None:
    """A switch takes no value: the free word behind it is the command's own."""
    for index, entry in enumerate(piece.entries):
        fact = (found.fact(entry.key) or "").lstrip("!")
        is_switch = fact in SWITCHES or "=" in fact
        if is_switch and isinstance(entry.value, str) and switch(entry.value) is None and not is_open(entry.value):
            piece.words.append(entry.value)
            piece.entries[index] = Entry(entry.key, True, entry.line, entry.written)


def _free_words(result: Assembled, piece: Piece, row: dict[str, Any], found: Tool) -> None:
    """A model or a recipe given without a flag."""
    free = [
        word
        for word in piece.words[len(row.get("match", "").split()) - 1 :]
        if not word.endswith((".yaml", ".yml", ".json"))
    ]
    if row.get("match", "").startswith("image"):
        free = [word for word in piece.words if word not in ("serve", "vllm")]
    if row.get("free") == "model" and free:
        result.facts.put("model", Fact(free[0], "the model's place", piece.line, OVERRIDE, found.name))
    if found.name == "torchtune":
        recipe = next((word for word in piece.words if "_" in word), "")
        if "distributed" in recipe:
            result.facts.put("distributed", Fact(True, recipe, piece.line, FILE, found.name))
        if "single_device" in recipe:
            result.facts.put("procs", Fact(1, recipe, piece.line, FILE, found.name))
        for stage in ("dpo", "ppo", "grpo"):
            if stage in recipe:
                result.facts.put("stage", Fact(stage, recipe, piece.line, FILE, found.name))
        config = next((one for one in piece.entries if one.key == "config"), None)
        if config:
            note_recipe(result.facts, config)


def _flags(result: Assembled, piece: Piece, found: Tool) -> None:
    side = _Side(result, found, OVERRIDE)
    for entry in piece.entries:
        if entry.key.startswith("$"):
            if found.engine == "tgi" and (spec := found.keys.get(entry.key[1:].lower())):
                result.facts.note(spec, entry, FILE, found.name)
            continue
        side.flag(entry, piece)


def _distributed(result: Assembled, piece: Piece) -> None:
    """``deepspeed`` and ``accelerate launch --use_deepspeed`` start DeepSpeed only with a config or a stage."""
    if any(one.program in ("torchrun", "deepspeed") for one in piece.launchers):
        result.facts.put("launched", Fact(True, piece.launchers[0].program, piece.line, FILE, "launcher"))


def _script(result: Assembled, piece: Piece) -> None:
    found = script_tool(piece.words)
    result.calls |= {name.rsplit(".", 1)[-1] for name in piece.words}
    if found is None:
        return
    _take(result, found.tool, found.how)
    scripted(result.facts, found.tool, piece)
    prefixes = tuple(f"{name}." for name in found.checked)
    known = [one for one in piece.entries if one.key.startswith(prefixes)]
    for entry in known:
        last = entry.last
        if not last.isdigit() and found.tool.fact(entry.key) is None and found.tool.fact(last) is None:
            _name_unknown(result, entry.last)


def _file(result: Assembled, piece: Piece) -> None:
    if is_adapter_config(piece.entries):
        note_adapter_config(result.facts, piece)
        return
    if is_hub_config(piece.entries):
        note_hub_config(result.facts, piece)
        return
    found = tool("ollama") if piece.form == "modelfile" else _expected(result, piece)
    if found is None:
        return
    _take(result, found, _keys(piece))
    side = _Side(result, found, FILE)
    for entry in piece.entries:
        side.file(entry)


def _expected(result: Assembled, piece: Piece) -> Tool | None:
    """The tool of a file: that of the command beside it where it knows the keys, else the one that knows most."""
    found = tool_of_keys(piece)
    launched = result.tool
    if launched and found and (launched.framework or launched.engine) and (found.framework or found.engine):
        own = sum(launched.fact(one.key) is not None for one in piece.entries)
        return launched if own * 2 >= len(piece.entries) else found
    return found


class _Side:
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
            _inline(self.result, entry)
        elif (
            entry.key.startswith("no_")
            and self.tool.fact(entry.key) is None
            and self.tool.fact(entry.key[3:]) is not None
        ):
            self.note(Entry(entry.key[3:], False, entry.line, entry.written))
        elif not self.note(entry) and entry.key not in LAUNCHERS_OWN:
            _name_unknown(self.result, entry.written or entry.key)

    def file(self, entry: Entry) -> None:
        """A key of a file: the top ones and those in sections that the tool checks are named when unknown."""
        if isinstance(entry.value, dict) and self.tool.keys.get(entry.key) == "deepspeed":
            _inline(self.result, entry)
            return
        known = self.note(entry)
        if not known and self._is_checked(entry):
            _name_unknown(self.result, entry.key)

    def _is_checked(self, entry: Entry) -> bool:
        if "[" in entry.key:
            return False
        section, dot, _ = entry.key.partition(".")
        if not dot:
            return section not in self.tool.open
        if section in self.tool.open or entry.key.count(".") > 1:
            return False
        return self.tool.nested or section in self.tool.sections


def _name_unknown(result: Assembled, name: str) -> None:
    if name not in result.unknown and len(result.unknown) < MOST_UNKNOWN:
        result.unknown.append(name[:LONGEST_NAME])


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


def _inline(result: Assembled, entry: Entry) -> None:
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
