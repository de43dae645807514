"""A paste as its parts: fenced blocks, here-documents, objects, and runs of lines of one kind."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"[ \t]*(```+|~~~+)[ \t]*([\w.+-]*)")
HEREDOC = re.compile(r"[^#\n]{0,200}\bcat\b[^\n]{0,200}<<-?[ \t]*['\"]?(\w+)['\"]?")
_REDIRECTED = re.compile(r">+\s*([^\s<>|]+)")
MOST_BLOCKS = 200
LANGUAGES = {
    "yaml": "yaml", "yml": "yaml", "json": "json", "jsonc": "json", "json5": "json", "toml": "toml",
    "python": "python", "py": "python", "python3": "python", "ipython": "python",
    "bash": "command", "sh": "command", "shell": "command", "console": "command", "zsh": "command",
    "cmd": "command", "powershell": "command", "bat": "command",
    "dockerfile": "modelfile", "modelfile": "modelfile",
}  # fmt: skip
PROGRAMS = (
    r"[\w.~${}/-]*/(?:accelerate|torchrun|deepspeed|python3?(?:\.\d+)?|trl|axolotl|swift|tune|litgpt|vllm|sglang|ollama"
    r"|llamafactory-cli|text-generation-launcher)|[\w.:\\~-]*\\(?:python|accelerate|torchrun|vllm)(?:\.exe)?"
    r"|accelerate|torchrun|deepspeed|python3?(?:\.\d+)?|trl|axolotl|llamafactory-cli|lmf|swift|megatron|tune|litgpt|vllm"
    r"|sglang|text-generation-launcher|ollama|llama-[\w-]+|(?:\./|[\w./~-]*/)(?:llama-[\w-]+|main|server|run_train\.sh)"
    r"|[\w.:\\~-]*\\(?:llama-[\w-]+|main|server)(?:\.exe)?|llama-[\w-]+\.exe"
    r"|docker|podman|sudo|nohup|env|export|cd|bash|sh|uv|srun|mpirun|conda|pip|set|source|CUDA_VISIBLE_DEVICES=\S*"
    r"|[A-Z_][A-Z0-9_]{2,}=(?:\"[^\"\n]*\"|\S*)|\w+=\S*[ \t]*\\?$|ray|exec|echo|mkdir|module|huggingface-cli|hf|git"
    r"|wget|curl|ulimit|unset|printf|nvidia-smi|wandb|tee"
)
_SHELL = re.compile(
    r"[ \t]*(?:(?:if|while|elif)[ \t]+(?:\[|!|\w+[ \t]+-)|for[ \t]+\w+[ \t]+in[ \t]"
    r"|(?:then|else|fi|do|done|esac)[ \t]*;?[ \t]*$|(?:exit|return|sleep)[ \t]+\d|local[ \t]+\w+=|trap[ \t]+['\"]"
    r"|wait[ \t]*$|[\"']?\$\{?\w+\}?[\"']?[ \t]+(?:-|\\$))"
)
"""Lines that only a shell has, by the words that plain English shares with it."""
_COMMAND = re.compile(rf"[ \t]*(?:\$[ \t]+|>[ \t]+|!|\([\w.-]+\)[^\n$#]*[$#][ \t]+)?(?:{PROGRAMS})(?=[ \t]|$|\\)")
_FLAG = re.compile(r"[ \t]*--?[A-Za-z][\w.-]*(?:[ =]|\\|$)")
_HYDRA = re.compile(r"[ \t]*\+{0,2}[\w./@]+=\S+[ \t]*\\?$")
_KEY = re.compile(r"[ \t]*(?:-[ \t]+)?[\"']?[A-Za-z_][\w.\-/]*[\"']?[ \t]*:(?=[ \t]|$)")
_ITEM = re.compile(r"[ \t]*-[ \t]+\S")
_CALL = re.compile(r"\b[A-Za-z_][\w.]*\(\s*(?:#[^\n]*\s*)*(?:[\"'\w]|\*\*|\))")
_CALLS = re.compile(r"^\s*(?:[\w.]+\s*=\s*)?[\w.]+\(|^\s*(?:from|import)\b")
_SECTION = re.compile(r"(?m)^[ \t]*\[[\w.\"-]+\][ \t]*(?:#.*)?$")
_TOML_KEY = re.compile(r"(?m)^[ \t]*[\w.\"-]+[ \t]*=[ \t]*(?:[\"'\[{\d+-]|true|false)")
_FROM = re.compile(r"(?m)^[ \t]*FROM[ \t]+\S+[ \t]*$", re.IGNORECASE)
_DOCKERFILE = re.compile(r"(?m)^[ \t]*(?:RUN|COPY|ENTRYPOINT|CMD|WORKDIR)[ \t]")
_OBJECT = re.compile(r"(?:\w+\s*=\s*)?\{")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a paste: its kind, its text, the line it begins on, and the file's name if one is given."""

    kind: str
    text: str
    line: int
    name: str = ""


def blocks(text: str) -> list[Block]:
    """The parts of a paste, in order; a paste in more than MOST_BLOCKS parts is cut there."""
    lines = text.split("\n")
    has_fences = any(FENCE.match(line) for line in lines)
    found: list[Block] = []
    start = index = 0
    while index < len(lines) and len(found) < MOST_BLOCKS:
        fence, heredoc = FENCE.match(lines[index]), HEREDOC.match(lines[index][:600])
        if not fence and not heredoc:
            index += 1
            continue
        found += _whole(lines[start:index], start + 1, has_fences)
        end = _end_of(lines, index, fence, heredoc)
        inner = lines[index + 1 : end]
        found += (
            _fenced(inner, index + 2, fence[2], _name_before(lines[max(0, index - 3) : index]))
            if fence
            else _written(inner, lines[index], index + 2)
        )
        start = index = end + 1
    return [*found, *_whole(lines[start:], start + 1, has_fences)][:MOST_BLOCKS]


def _end_of(lines: list[str], index: int, fence: re.Match[str] | None, heredoc: re.Match[str] | None) -> int:
    """The line that closes a fence or a here-document; the end of the text where none does."""
    mark = fence[1] if fence else ""
    for number in range(index + 1, len(lines)):
        stripped = lines[number].strip()
        if stripped.startswith(mark) if fence else heredoc and stripped == heredoc[1]:
            return number
    return len(lines)


def _name_before(lines: list[str]) -> str:
    """The name of a file on the line above a block: "ds.json:"."""
    above = next((line for line in reversed(lines) if line.strip()), "")[-200:]
    found = re.search(r"([\w./-]+\.(?:json|ya?ml|toml|py|sh))[`*:：\s]*$", above)
    return found[1] if found else ""


def _fenced(lines: list[str], line: int, language: str, name: str) -> list[Block]:
    """A fenced block: of the kind its language says, else of the kind it looks like."""
    kind = LANGUAGES.get(language.lower(), "")
    text = "\n".join(lines)
    if kind and kind != "command":
        return [Block(kind, text, line, name)]
    return [Block(one.kind, one.text, one.line + line - 1, name) for one in blocks(text)]


def _written(lines: list[str], head: str, line: int) -> list[Block]:
    """A file that a here-document writes."""
    target = _REDIRECTED.search(head[:600])
    name = target[1] if target else ""
    return [Block(one.kind, one.text, one.line, name) for one in _whole(lines, line, False)]


def _whole(lines: list[str], line: int, prose_rather: bool) -> list[Block]:
    """Lines outside fences, as one block of what they look like or as runs of lines of one kind."""
    text = "\n".join(lines)
    if not text.strip():
        return []
    kind = kind_of(text)
    return [Block(kind, text, line)] if kind != "lines" else list(_runs(lines, line, prose_rather))


def kind_of(text: str) -> str:
    """What a text as a whole looks like; "lines" when its lines have to tell."""
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        return "python" if '"cells"' in stripped and '"nbformat"' in stripped else "json"
    if _SECTION.search(text) and _TOML_KEY.search(text) and not _COMMAND.match(stripped):
        return "toml"
    if _FROM.search(text) and not _DOCKERFILE.search(text):
        return "modelfile"
    return "python" if _is_python(text) else "lines"


def _is_python(text: str) -> bool:
    """Whether calls with keywords, imports and assignments make up the text, and no command line does."""
    told = (line[:300] for line in text[:40_000].splitlines())
    lines = [line for line in told if line.strip() and not line.lstrip().startswith("#")][:400]
    sample = "\n".join(lines)
    if not _CALL.search(sample):
        return False
    commands = sum(bool(_COMMAND.match(line) and not _is_assigned(line)) or bool(_FLAG.match(line)) for line in lines)
    calls = sum(bool(_CALLS.search(line)) for line in lines)
    keys = sum(bool(_KEY.match(line)) and "(" not in line for line in lines)
    return calls > 0 and commands <= calls and keys <= len(lines) / 2


def _is_assigned(line: str) -> bool:
    return bool(re.match(r"\s*\w+\s+=\s|\s*\w+=[\w.\"'\[]+[^\\]*$", line))


def _runs(lines: list[str], line: int, prose_rather: bool) -> Iterator[Block]:
    """Runs of lines of one kind; an object that begins on a line of its own is one."""
    kinds = list(_kinds(lines, prose_rather))
    start = 0
    for index in range(1, len(lines) + 1):
        if index < len(lines) and kinds[index] == kinds[start]:
            continue
        part = "\n".join(lines[start:index])
        if part.strip():
            yield Block(kinds[start], part, line + start)
        start = index


def _kinds(lines: list[str], prose_rather: bool) -> Iterator[str]:
    """The kind of each line; blank lines and comments go with the line before."""
    before, depth, continued, quote = "", 0, False, False
    config = _is_config(lines)
    for line in lines:
        if depth > 0:
            depth += line.count("{") - line.count("}")
            yield before
            continue
        stripped = line.strip()
        if continued or quote:
            kind = "command"
        elif not stripped or stripped.startswith("#"):
            kind = before or ("command" if stripped.startswith("#!") else "yaml" if config else "command")
        else:
            kind = _kind(line, before, config and not prose_rather)
        if kind == "json":
            depth = line.count("{") - line.count("}")
        continued = kind == "command" and bool(re.search(r"(\\|\s\^|\s`)\s*$", line))
        quote = kind == "command" and (quote != (_odd_quotes(line)))
        before = kind
        yield kind


def _odd_quotes(line: str) -> bool:
    """Whether a quote opens on the line and does not close."""
    bare = re.sub(r"\\.", "", line)
    return (bare.count("'") % 2 == 1 and '"' not in bare) or (bare.count('"') % 2 == 1 and "'" not in bare)


def _is_config(lines: list[str]) -> bool:
    """Whether keys with colons are what most lines hold."""
    told = [line for line in lines[:2000] if line.strip() and not line.lstrip().startswith("#")]
    keys = sum(bool(_KEY.match(line)) for line in told)
    return keys >= 2 and keys >= len(told) * 0.25


def _kind(line: str, before: str, config: bool) -> str:
    """The kind of a line that says something, given the kind of the one before and whether keys abound."""
    stripped = line.strip()
    if _OBJECT.match(line if config else stripped):
        return "json"
    if config and before == "yaml" and line[:1] in " \t":
        return "yaml"
    if _is_command(line, before, config):
        return "command"
    if before == "yaml" and (_ITEM.match(line) or line[:1] in " \t" or _KEY.match(line)):
        return "yaml"
    if config and (_KEY.match(line) or (before == "yaml" and not re.search(r"[.?!？。！]$", stripped))):
        return "yaml"
    assigned = re.match(r"[A-Za-z_]\w*=\S+$", stripped) or (before == "command" and re.match(r"\w+\s*=", stripped))
    return "command" if assigned else "prose"


def _is_command(line: str, before: str, config: bool) -> bool:
    """Whether a line starts a command, or goes on with one."""
    flag = bool(_FLAG.match(line))
    if before == "command" and (flag or _HYDRA.match(line) or line.strip() in ("done", "fi", ")", "}")):
        return True
    if (_COMMAND.match(line) or _SHELL.match(line)) and not (config and _KEY.match(line)):
        return True
    return flag and not (config and before == "yaml" and not line.lstrip().startswith("--"))
