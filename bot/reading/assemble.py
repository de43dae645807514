"""Pieces to facts: each piece by the table of its tool, what no table knows is kept by name."""

from typing import Any

from bot.reading.commands import program_of
from bot.reading.detect import is_adapter_config, is_hub_config, tool_of_keys
from bot.reading.entries import Entry, Piece
from bot.reading.facts import DEFAULT, FILE, OVERRIDE, SWITCHES, Fact
from bot.reading.gathered import Assembled, name_unknown, take_tool
from bot.reading.hub import note_adapter_config, note_hub_config
from bot.reading.named import note_named_files, note_recipe
from bot.reading.repeats import note_repeats, unseen_file
from bot.reading.scalars import is_open, switch
from bot.reading.scripts import script_tool, scripted
from bot.reading.sides import Side
from bot.reading.tables import Tool, tool


def assembled(pieces: list[Piece]) -> Assembled:
    """The facts of all pieces."""
    result = Assembled()
    for piece in pieces:
        note_repeats(result, piece)
        if piece.form == "command":
            _command(result, piece)
        elif piece.form == "python":
            _script(result, piece)
        elif piece.form == "environment":
            _environment(result, piece)
        elif piece.form != "prose":
            _file(result, piece)
    result.unseen = unseen_file(pieces)
    note_named_files(result.facts, result.tool, _has_deepspeed(pieces))
    return result


def _has_deepspeed(pieces: list[Piece]) -> bool:
    """Whether DeepSpeed's own file is in the paste."""
    return any(one.key == "zero_optimization" for piece in pieces for one in piece.entries)


def _command(result: Assembled, piece: Piece) -> None:
    row = program_of(piece)
    if "tool" in row and not _knows(tool(row["tool"]), piece):
        row = {}
    found = tool(row["tool"]) if "tool" in row else tool_of_keys(piece)
    for launcher in piece.launchers:
        _launcher(result, launcher)
    _environment(result, piece)
    if found is None:
        return
    how = f"{piece.program.removeprefix('image:')} (line {piece.line})" if "tool" in row else _keys(piece)
    take_tool(result, found, how)
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


COMMON_NAMES = frozenset(
    ("train_lora.py", "train_sft.py", "train_dpo.py", "train_grpo.py", "train_ppo.py", "train_rm.py", "sft.py",
     "dpo.py", "train_full_sft.py", "train_pretrain.py", "grpo.py", "kto.py", "orpo.py", "ppo.py", "rloo.py",
     "reward_modeling.py")
)  # fmt: skip
"""Scripts of a tool that many others have named their own by."""


def _knows(found: Tool, piece: Piece) -> bool:
    """Whether a script with a common name takes the flags of the tool that it would be of."""
    flags = [one.key for one in piece.entries if not one.key.startswith("$")]
    if piece.program.rsplit("/", 1)[-1] not in COMMON_NAMES or not flags:
        return True
    tables = [found, *(tool(name) for name in found.also)]
    return 2 * sum(any(one.fact(key) is not None for one in tables) for key in flags) >= len(flags)


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
    side = Side(result, table, OVERRIDE)
    for entry in launcher.entries:
        side.note(entry)
        if entry.key == "config_file" and launcher.program == "accelerate":
            result.facts.put("accelerate_file", Fact(str(entry.value), entry.name, entry.line, FILE, table.name))
    if launcher.program == "accelerate":
        take_tool(result, table, f"accelerate launch (line {launcher.line})")


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
            take_tool(result, tool("ollama"), f"{entry.name} (line {entry.line})")


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
    side = Side(result, found, OVERRIDE)
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
    take_tool(result, found.tool, found.how)
    scripted(result.facts, found.tool, piece)
    prefixes = tuple(f"{name}." for name in found.checked)
    known = [one for one in piece.entries if one.key.startswith(prefixes)]
    for entry in known:
        last = entry.last
        if not last.isdigit() and found.tool.fact(entry.key) is None and found.tool.fact(last) is None:
            name_unknown(result, entry.last)


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
    take_tool(result, found, _keys(piece))
    side = Side(result, found, FILE)
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
