"""A paste as its parts: fenced blocks, here-documents, objects, and runs of lines of one kind."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([\w.+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
HEREDOC = re.compile(
    r"^[^\n#]*?\bcat\b[^\n]*?<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n(.*?)^[ \t]*\2[ \t]*$", re.MULTILINE | re.DOTALL
)
_REDIRECTED = re.compile(r">+\s*([^\s<>|]+)")
LANGUAGES = {
    "yaml": "yaml", "yml": "yaml", "json": "json", "jsonc": "json", "json5": "json", "toml": "toml",
    "python": "python", "py": "python", "python3": "python", "ipython": "python",
    "bash": "command", "sh": "command", "shell": "command", "console": "command", "zsh": "command",
    "cmd": "command", "powershell": "command", "bat": "command",
    "dockerfile": "modelfile", "modelfile": "modelfile",
}  # fmt: skip
PROGRAMS = (
    r"accelerate|torchrun|deepspeed|python3?(?:\.\d+)?|trl|axolotl|llamafactory-cli|lmf|swift|megatron|tune|litgpt|vllm"
    r"|sglang|text-generation-launcher|ollama|llama-[\w-]+|(?:\./|[\w./~-]*/)(?:llama-[\w-]+|main|server|run_train\.sh)"
    r"|docker|podman|sudo|nohup|env|export|cd|bash|sh|uv|srun|mpirun|conda|pip|set|source|CUDA_VISIBLE_DEVICES=\S*"
    r"|[A-Z_][A-Z0-9_]{2,}=\S*|\w+=\S*[ \t]*\\?$|ray"
)
_COMMAND = re.compile(rf"[ \t]*(?:\$[ \t]+|>[ \t]+|!|\([\w.-]+\)[^\n$#]*[$#][ \t]+)?(?:{PROGRAMS})(?=[ \t]|$|\\)")
_FLAG = re.compile(r"[ \t]*--?[A-Za-z][\w.-]*(?:[ =]|\\|$)")
_HYDRA = re.compile(r"[ \t]*\+{0,2}[\w./@]+=\S+[ \t]*\\?$")
_KEY = re.compile(r"[ \t]*(?:-[ \t]+)?[\"']?[A-Za-z_][\w.\-/]*[\"']?[ \t]*:(?=[ \t]|$)")
_ITEM = re.compile(r"[ \t]*-[ \t]+\S")
_PYTHON = re.compile(
    r"[ \t]*(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]+\w|def[ \t]+\w+\(|class[ \t]+\w+|@\w|with[ \t]|if[ \t].*:$"
    r"|[\w., ]+[ \t]+=[ \t]+\S|[\w.]+\(|[\w.]+[ \t]*=[ \t]*[\w.]+\()"
)
_CALL = re.compile(r"\b[A-Za-z_][\w.]*\(\s*(?:#[^\n]*\s*)*(?:[\"'\w]|\*\*|\))")
_SECTION = re.compile(r"(?m)^[ \t]*\[[\w.\"-]+\][ \t]*(?:#.*)?$")
_TOML_KEY = re.compile(r"(?m)^[ \t]*[\w.\"-]+[ \t]*=[ \t]*(?:[\"'\[{\d+-]|true|false)")
_FROM = re.compile(r"(?m)^[ \t]*FROM[ \t]+\S+[ \t]*$", re.IGNORECASE)
_DOCKERFILE = re.compile(r"(?m)^[ \t]*(?:RUN|COPY|ENTRYPOINT|CMD|WORKDIR)[ \t]")
_OBJECT = re.compile(r"(?m)^[ \t]*(?:\w+[ \t]*=[ \t]*)?\{")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a paste: its kind, its text, the line it begins on, and the file's name if one is given."""

    kind: str
    text: str
    line: int
    name: str = ""
    fenced: bool = False


def blocks(text: str) -> list[Block]:
    """The parts of a paste, in order."""
    found: list[Block] = []
    position = 0
    for fence in FENCE.finditer(text):
        found += _outside(text[position : fence.start()], _line(text, position), True)
        kind = LANGUAGES.get(fence[2].lower(), "")
        inner = fence[3]
        line = _line(text, fence.start(3))
        named = _name_before(text[max(0, fence.start() - 200) : fence.start()])
        found += [Block(kind, inner, line, named, True)] if kind and kind != "command" else _inside(inner, line, named)
        position = fence.end()
    return found + _outside(text[position:], _line(text, position), bool(found))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _name_before(text: str) -> str:
    """The name of a file on the line above a block: "ds.json:"."""
    found = re.search(r"([\w./-]+\.(?:json|ya?ml|toml|py|sh))[`*:：\s]*\Z", text)
    return found[1] if found else ""


def _inside(text: str, line: int, name: str) -> list[Block]:
    """A fenced block without a telling language: its here-documents, and the rest as what it looks like."""
    return _parts(text, line, False, name, True)


def _outside(text: str, line: int, beside_fences: bool) -> list[Block]:
    return _parts(text, line, beside_fences, "", False) if text.strip() else []


def _parts(text: str, line: int, prose_rather: bool, name: str, fenced: bool) -> list[Block]:
    found: list[Block] = []
    position = 0
    for heredoc in HEREDOC.finditer(text):
        found += _whole(
            text[position : heredoc.start()], line + text.count("\n", 0, position), prose_rather, "", fenced
        )
        target = _REDIRECTED.search(heredoc[0].split("\n", 1)[0])
        inner_line = line + text.count("\n", 0, heredoc.start(3))
        found.append(Block(kind_of(heredoc[3]), heredoc[3], inner_line, target[1] if target else "", True))
        position = heredoc.end()
    return found + _whole(text[position:], line + text.count("\n", 0, position), prose_rather, name, fenced)


def _whole(text: str, line: int, prose_rather: bool, name: str, fenced: bool) -> list[Block]:
    if not text.strip():
        return []
    kind = kind_of(text)
    if kind in ("json", "python", "toml", "modelfile", "notebook"):
        return [Block(kind, text, line, name, fenced)]
    return list(_runs(text, line, prose_rather, name, fenced))


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
    sample = text[:20_000]
    if not _CALL.search(sample):
        return False
    lines = [line for line in sample.splitlines() if line.strip() and not line.lstrip().startswith("#")][:400]
    commands = sum(bool(_COMMAND.match(line) and not _is_assigned(line)) or bool(_FLAG.match(line)) for line in lines)
    calls = len(re.findall(r"[\w.]+\s*=\s*[\w.]+\(|^\s*[\w.]+\(|\bimport\b", sample, re.MULTILINE))
    keys = sum(bool(_KEY.match(line)) and "(" not in line for line in lines)
    return calls > 0 and commands <= calls and keys <= len(lines) / 2


def _is_assigned(line: str) -> bool:
    return bool(re.match(r"\s*\w+\s+=\s|\s*\w+=[\w.\"'\[]+[^\\]*$", line))


def _runs(text: str, line: int, prose_rather: bool, name: str, fenced: bool) -> Iterator[Block]:
    """Runs of lines of one kind; an object that begins on a line of its own is one."""
    kinds = list(_kinds(text.splitlines(), prose_rather))
    start = 0
    lines = text.splitlines()
    for index in range(1, len(lines) + 1):
        if index < len(lines) and kinds[index] == kinds[start]:
            continue
        part = "\n".join(lines[start:index])
        if part.strip():
            yield Block(kinds[start], part, line + start, name, fenced)
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
    stripped = line.strip()
    if re.match(r"(?:\w+\s*=\s*)?\{", line if config else stripped):
        return "json"
    if config and before == "yaml" and line[:1] in " \t":
        return "yaml"
    if before == "command" and (_FLAG.match(line) or _HYDRA.match(line) or stripped in ("done", "fi", ")", "}")):
        return "command"
    if _COMMAND.match(line) and not (config and _KEY.match(line)):
        return "command"
    if _FLAG.match(line) and not (config and before == "yaml" and not stripped.startswith("--")):
        return "command"
    if before == "yaml" and (_ITEM.match(line) or line[:1] in " \t" or _KEY.match(line)):
        return "yaml"
    if _KEY.match(line) and (
        config or (re.match(r"[\w.\"'-]+:(?:[ \t]+\S|[ \t]*$)", line) and " " not in stripped.split(":")[0])
    ):
        return "yaml" if config or before == "yaml" else "prose"
    if _ITEM.match(line) and before == "yaml":
        return "yaml"
    if config and before == "yaml" and not re.search(r"[.?!？。！]$", stripped):
        return "yaml"
    if re.match(r"[\w.\"-]+\s*=\s*\S+$", stripped):
        return "command" if re.match(r"[A-Za-z_]\w*=\S", stripped) or before == "command" else "prose"
    return "prose"
