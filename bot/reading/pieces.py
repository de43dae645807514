"""Blocks of a paste as pieces: each read by the reader of its format."""

import re
from dataclasses import replace

from bot.reading.commands import read_commands
from bot.reading.compose import compose_pieces
from bot.reading.entries import Entry, Piece, Refused
from bot.reading.formats.json_text import read_json
from bot.reading.formats.modelfile import read_modelfile
from bot.reading.formats.python_calls import notebook_source, read_python
from bot.reading.formats.shell import Shell
from bot.reading.formats.toml_text import read_toml
from bot.reading.formats.yaml_text import read_yaml
from bot.reading.paste import Block, blocks
from bot.reading.scalars import plain

_LINE = re.compile(r"[ \t]*(?:-[ \t]+)?[\"']?([A-Za-z_][\w.\-]*)[\"']?[ \t]*[:=][ \t]*(.*?)[ \t]*,?[ \t]*$")
LONGEST_LINE = 2000
_ASSIGNED = re.compile(r"\s*(\w+)\s*=\s*\{")


def pieces_of(text: str) -> list[Piece]:
    """Every piece of a paste. Raises Refused for what is not read at all."""
    found: list[Piece] = []
    shell = Shell("")
    for block in blocks(text):
        for piece in _read(block, shell):
            piece.name = piece.name or block.name
            found.append(piece)
    return found


def _read(block: Block, shell: Shell) -> list[Piece]:
    if block.kind == "command":
        return read_commands(_with_slashes(block.text), block.line, shell)
    if block.kind == "python":
        return _python(block)
    if block.kind == "modelfile":
        return [Piece("modelfile", read_modelfile(block.text, block.line), block.line)]
    if block.kind in ("yaml", "json", "toml"):
        return _config(block)
    return [Piece("prose", [], block.line, text=block.text)]


WINDOWS = re.compile(r"\.exe\b|(?:^|[\s\"'])[A-Za-z]:\\|[ \t]`[ \t]*$", re.MULTILINE)


def _with_slashes(text: str) -> str:
    """A command of Windows with the slashes that everybody else's paths have."""
    return re.sub(r"\\(?=[\w.])", "/", text) if WINDOWS.search(text) else text


def _python(block: Block) -> list[Piece]:
    """A script: its calls, and the dicts that look like a DeepSpeed config."""
    entries, calls = read_python(notebook_source(block.text), block.line)
    return [Piece("python", entries, block.line, words=calls)]


def _config(block: Block) -> list[Piece]:
    """A file; one that is broken is read line by line, as far as its lines are keys."""
    try:
        if block.kind == "json":
            entries = read_json(_object(block.text), block.line)
        elif block.kind == "toml":
            entries = read_toml(block.text, block.line)
        else:
            entries = _shifted(read_yaml(block.text), block.line - 1)
    except ValueError:
        entries = _by_lines(block)
    services = compose_pieces(entries) if block.kind == "yaml" else []
    form = "json" if block.kind == "json" else "toml" if block.kind == "toml" else "yaml"
    return services or [Piece(form, entries, block.line)]  # type: ignore[arg-type]


def _object(text: str) -> str:
    """``ds_config = {…}`` without its name."""
    named = _ASSIGNED.match(text)
    return text[named.end() - 1 :] if named else text


def _shifted(entries: list[Entry], lines: int) -> list[Entry]:
    return [replace(one, line=one.line + lines) for one in entries] if lines else entries


def _by_lines(block: Block) -> list[Entry]:
    """The ``key: value`` lines of a broken file."""
    found = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        match = _LINE.match(re.sub(r"(^|\s)#.*$", "", line)) if len(line) < LONGEST_LINE else None
        if match:
            if "!!python" in match[2] or "!!" in match[2][:3]:
                raise Refused("read.tag", number, match[2].split()[0][2:60])
            value = match[2].strip("\"'")
            found.append(Entry(match[1], plain(value) if value == match[2] else value, number))
    return found
