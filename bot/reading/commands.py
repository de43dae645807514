"""Launch lines: what starts what, and every flag with its value and line."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from bot.reading.entries import Entry, Piece
from bot.reading.formats.shell import UNKNOWN, Command, Shell
from bot.reading.tables import programs

_FLAG = re.compile(r"--?[A-Za-z][\w.\-]*(?:=.*)?", re.DOTALL)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w.@/\-]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.]+(e-?\d+)?")
SHORT = frozenset({"m", "c", "np", "ngl", "tp", "pp", "dp", "q", "hf", "b", "ub", "fa", "ctk", "ctv", "ot", "n", "ts"})
DOCKER_SWITCHES = frozenset({"d", "it", "i", "t", "rm", "init", "privileged", "detach", "interactive", "tty"})
DOCKER_GLUED = re.compile(r"-(?:d|i|t|it|dit|itd|td)$")
MODULE_FLAGS = ("-m", "--module")


def read_commands(text: str, first_line: int = 1, before: Shell | None = None) -> list[Piece]:
    """The commands of a script that run something; variables that stand alone are a piece of their own.

    ``before`` is the shell that read what stands above in the same paste; its variables are known here.
    """
    shell = Shell(text, first_line)
    known = dict(before.exported) if before else {}
    if before:
        shell.values, shell.exported = before.values, before.exported
    found = [piece for command in shell.commands() if (piece := piece_of(command))]
    if before:
        before.exported = shell.exported
    new = {name: value for name, value in shell.exported.items() if known.get(name) != value}
    if not found and new:
        found = [Piece("environment", _variables(new), first_line)]
    return found


def piece_of(command: Command) -> Piece | None:
    """A command as a piece: launchers taken off, flags read; None where nothing is left."""
    words = list(zip(command.words, command.lines, strict=True))
    piece = Piece("command", line=words[0][1] if words else 1)
    piece.entries += _variables(command.variables)
    rest = _without_prefixes(words, piece)
    if rest and rest[0][0] in programs()["housekeeping"]["names"]:
        return None
    rest = _container(rest, piece)
    rest = _without_launchers(rest, piece)
    if not rest and not piece.launchers:
        return None
    _read(rest, piece)
    return piece


def _variables(variables: dict[str, tuple[str, int]]) -> list[Entry]:
    return [Entry(f"${name}", value, line, name) for name, (value, line) in variables.items() if UNKNOWN not in value]


Words = list[tuple[str, int]]


def _without_prefixes(words: Words, piece: Piece) -> Words:
    """The words behind sudo, nohup, ``uv run``, and variables set by ``env``."""
    prefixes: dict[str, int] = programs()["prefixes"]
    if words and words[0][0] == "ray":
        words = _split(words)[1] or words
    while words and (words[0][0] in prefixes or words[0][0] in ("$", "!", ">", "%%bash")):
        name = words[0][0]
        words = words[1 + prefixes.get(name, 0) :]
        while words and (words[0][0].startswith("-") or (name == "env" and "=" in words[0][0])):
            if "=" in words[0][0] and not words[0][0].startswith("-"):
                key, value = words[0][0].split("=", 1)
                piece.entries.append(Entry(f"${key}", value, words[0][1], key))
            words = words[1:]
    if words and words[0][0].startswith(("!", "%")):
        words = [(words[0][0].lstrip("!%"), words[0][1]), *words[1:]]
    return words


def _container(words: Words, piece: Piece) -> Words:
    """``docker run … IMAGE args``: the image becomes the program, its cards and variables are kept."""
    if len(words) < 3 or words[0][0] not in ("docker", "podman", "nerdctl") or "run" not in (words[1][0], words[2][0]):
        return words
    index = next(place for place, word in enumerate(words) if word[0] == "run") + 1
    while index < len(words) and words[index][0].startswith("-"):
        word, line = words[index]
        name, given, value = word.lstrip("-").partition("=")
        index += 1
        if not given and name not in DOCKER_SWITCHES and not DOCKER_GLUED.match(word) and index < len(words):
            value = words[index][0]
            index += 1
        _docker_option(name, value, line, piece)
    if index >= len(words):
        return []
    image = words[index][0]
    return [(f"image:{image}", words[index][1]), *words[index + 1 :]]


def _docker_option(name: str, value: str, line: int, piece: Piece) -> None:
    if name in ("e", "env") and "=" in value:
        key, _, inner = value.partition("=")
        piece.entries.append(Entry(f"${key}", inner, line, key))
    elif name == "gpus":
        cards = value.strip("'\"")
        devices = cards.partition("device=")[2].strip("\"'")
        if devices or cards.isdigit():
            piece.entries.append(
                Entry("$docker_gpus", len(devices.split(",")) if devices else int(cards), line, "--gpus")
            )


def _without_launchers(words: Words, piece: Piece) -> Words:
    """The words behind python, torchrun, accelerate launch and the like; each launcher's own flags become its piece."""
    while words:
        name = re.split(r"[/\\]", words[0][0])[-1].removesuffix(".exe")
        if re.fullmatch(r"python[\d.]*|bash|sh|pythonw|coverage", name) and len(words) > 1:
            words = _behind_python(words[1:])
            if words and words[0][0] in ("torch.distributed.run", "torch.distributed.launch"):
                words = [("torchrun", words[0][1]), *words[1:]]
            elif words and words[0][0] == "accelerate.commands.launch":
                words = [("accelerate", words[0][1]), ("launch", words[0][1]), *words[1:]]
            else:
                return words
            continue
        if name == "accelerate" and len(words) > 1 and words[1][0] == "launch":
            words = _launched("accelerate", words[2:], piece)
        elif name == "tune" and len(words) > 1 and words[1][0] == "run":
            rest = _launched("torchrun", words[2:], piece)
            return [("tune", words[0][1]), ("run", words[0][1]), *rest]
        elif name in ("torchrun", "deepspeed", "mpirun", "srun"):
            words = _launched(name, words[1:], piece)
        else:
            return words
    return words


def _behind_python(words: Words) -> Words:
    """The script or module that an interpreter runs."""
    while words and words[0][0].startswith("-"):
        flag = words[0][0]
        words = words[1:]
        if flag == "-m":
            return words
        if flag in ("-c", "-W", "-X"):
            words = words[1:]
    return words


def _launched(name: str, words: Words, piece: Piece) -> Words:
    """Take a launcher's own flags off; what it launches is left."""
    switches = set(programs()["launchers"][name])
    launcher = Piece("command", program=name, line=piece.line)
    index = 0
    while index < len(words) and words[index][0].startswith("-"):
        flag, line = words[index]
        key, given, value = flag.lstrip("-").partition("=")
        key = key.replace("-", "_")
        index += 1
        if flag in MODULE_FLAGS:
            break
        if key in switches:
            launcher.entries.append(Entry(key, True, line, flag))
        elif given or index >= len(words):
            launcher.entries.append(Entry(key, value, line, flag.partition("=")[0]))
        else:
            launcher.entries.append(Entry(key, words[index][0], line, flag))
            index += 1
    launcher.entries = [one for one in launcher.entries if UNKNOWN not in str(one.value)]
    piece.launchers.append(launcher)
    return words[index:]


def _read(words: Words, piece: Piece) -> None:
    """The program, its free words, its flags and its ``key=value`` overrides."""
    if words:
        piece.program, piece.line = words[0]
        words = words[1:]
    head, tail = _split(words)
    free, entries = flags_of(head, _takes_overrides(piece.program, head))
    piece.words += free
    piece.entries += entries
    if tail:
        free, entries = flags_of(tail, False)
        piece.launchers.append(Piece("command", entries, piece.line, "torchrun"))


def _split(words: Words) -> tuple[Words, Words]:
    """The words before and behind ``--``."""
    place = next((index for index, word in enumerate(words) if word[0] == "--"), len(words))
    return words[:place], words[place + 1 :]


def _takes_overrides(program: str, words: Words) -> bool:
    """Whether ``key=value`` words are overrides of a config here: hydra's and torchtune's way, and LLaMA-Factory's."""
    known = program in ("tune", "llamafactory-cli", "lmf") or "verl" in program
    return known or not any(_is_flag(word) for word, _ in words)


def flags_of(words: Words, overrides: bool) -> tuple[list[str], list[Entry]]:
    """Free words and entries; a flag takes the values up to the next flag, several of them as a list."""
    free: list[str] = []
    entries: list[Entry] = []
    index = 0
    while index < len(words):
        word, line = words[index]
        index += 1
        if _is_flag(word):
            key, given, value = word.lstrip("-").partition("=")
            values = [value] if given else []
            while (
                not given and index < len(words) and not _is_flag(words[index][0]) and not _is_override(words[index][0])
            ):
                values.append(words[index][0])
                index += 1
            entries += _entry(key, word.partition("=")[0], values, line)
        elif overrides and (override := _OVERRIDE.fullmatch(word)) and not override[1].isupper():
            entries += _entry(override[1], override[1], [override[2]], line)
        else:
            free.append(word)
    return [word for one in free if UNKNOWN not in (word := _without_folder(one))], entries


def _entry(key: str, written: str, values: list[str], line: int) -> Iterator[Entry]:
    values = [_without_folder(value) for value in values]
    if any(UNKNOWN in value for value in values):
        return
    value: Any = True if not values else values[0] if len(values) == 1 else values
    yield Entry(key.replace("-", "_"), value, line, written)


def _without_folder(path: str) -> str:
    """What a path ends with whose folders only a running shell knows: the model of ``$HOME/models/name``."""
    last = path.rpartition("/")[2]
    return last if UNKNOWN in path and last and UNKNOWN not in last else path


def _is_flag(word: str) -> bool:
    return bool(_FLAG.fullmatch(word)) and not _NUMBER.fullmatch(word)


def _is_override(word: str) -> bool:
    """Whether a word is a hydra override, which no value of a flag looks like."""
    found = _OVERRIDE.fullmatch(word)
    return found is not None and "{" not in word and not found[1].isupper()


@cache
def _matches() -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    rows = [(tuple(row["match"].split()), row) for row in programs()["program"]]
    return sorted(rows, key=lambda one: (-len(one[0]), -len(one[1]["match"])))


def program_of(piece: Piece) -> dict[str, Any]:
    """The row of the table that fits what a command runs; empty when none does."""
    named = piece.program
    if named.startswith("image:"):
        image = named.removeprefix("image:").rsplit("/", 1)[-1]
        heads: list[tuple[str, ...]] = [("image", part) for part in (image.split(":")[0].split("@")[0], *_parts(named))]
    else:
        base = named.rsplit("/", 1)[-1]
        tail = "/".join(named.rsplit("/", 2)[-2:])
        heads = [(tail,), (base,), (named,), (base.removesuffix(".exe"),)]
    for match, row in _matches():
        for head in heads:
            if (*head, *piece.words[: max(0, len(match) - len(head))]) == match:
                return row
    return {}


def _parts(image: str) -> list[str]:
    return [part.split(":")[0] for part in image.removeprefix("image:").split("/")]
