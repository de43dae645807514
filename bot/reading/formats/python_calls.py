"""Python scripts and notebooks by their syntax tree: the keywords of calls that matter, never a line of it run.

Names are followed to the literals they were given, sums of them are worked out; what only running would tell is left.
"""

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from itertools import islice
from typing import Any

from bot.reading.entries import Entry
from bot.reading.formats.arithmetic import combined

LONGEST_TREE = 2**18
"""Characters that are parsed at once; of a longer script only the statements with calls."""
LONGEST_STRING = 4096
LONGEST_NAME = 200
SUPPORTED = frozenset({"is_bfloat16_supported", "is_bf16_supported", "is_torch_bf16_gpu_available"})
"""Checks whether the card has bf16, which every card since 2020 does."""
_MAGIC = re.compile(r"^[ \t]*[!%][^\n]*$", re.MULTILINE)
_CALL = re.compile(
    r"(?m)^[ \t]*(?:[\w.\[\], ]{1,120}?=\s*)?[\w.]{0,120}(?:Config|Arguments|Trainer|Args|from_pretrained"
    r"|get_peft_model|prepare_model_for_kbit_training|gradient_checkpointing_enable|LLM|Llama|SamplingParams)\("
)
_ASSIGNED = re.compile(r"(?m)^[ \t]*[A-Za-z_]\w*[ \t]*=[ \t]*[\"'\d\[{(TFN][^\n]{0,500}$")
MOST_STATEMENTS = 1000
"""Statements of a script that does not parse as a whole."""


class Unknown:
    """A value that only running the script would tell."""


def notebook_source(text: str) -> str:
    """The code cells of a pasted .ipynb; the text itself when it is none."""
    if not text.lstrip().startswith("{") or '"cells"' not in text:
        return text
    try:
        cells = json.loads(text).get("cells", [])
    except (ValueError, AttributeError, RecursionError):
        return text
    sources = (cell.get("source", "") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code")
    return "\n".join("".join(map(str, one)) if isinstance(one, list) else str(one) for one in sources)


def read_python(text: str, first_line: int = 1) -> tuple[list[Entry], list[str]]:
    """The keywords of every call as ``Call.keyword``, and the names of the calls. Broken code gives what it can."""
    reader = _Reader(first_line)
    for tree, offset in _trees(_MAGIC.sub("", text)):
        reader.read(tree, offset)
    return reader.entries, reader.calls


def _trees(text: str) -> Iterator[tuple[ast.Module, int]]:
    """The script as one tree, or as its statements where the whole does not parse."""
    whole = _parsed(text) if len(text) <= LONGEST_TREE else None
    if whole is not None:
        yield whole, 0
        return
    line = position = 0
    for start, statement in _statements(text):
        line += text.count("\n", position, start)
        position = start
        tree = _parsed(textwrap.dedent(statement))
        if tree is not None:
            yield tree, line


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Assignments of one line, and calls with their brackets closed."""
    end = 0
    calls = islice((one.start() for one in _CALL.finditer(text)), MOST_STATEMENTS)
    assigned = islice((one.start() for one in _ASSIGNED.finditer(text)), MOST_STATEMENTS)
    for start in sorted({*calls, *assigned}):
        if start < end:
            continue
        end = _closed(text, start)
        yield start, text[start:end]


def _closed(text: str, start: int) -> int:
    """Where the statement's line ends with all its brackets closed; the line's own end where they never are."""
    depth, position, longest = 0, start, min(len(text), start + 20_000)
    for found in re.finditer(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*|[()\[\]{}\n]", text[start:longest]):
        position = start + found.start()
        mark = found[0]
        depth += (mark in ("(", "[", "{")) - (mark in (")", "]", "}"))
        if mark == "\n" and depth <= 0:
            return position
    return longest if depth <= 0 else max(text.find("\n", start), start + 1)


class _Reader:
    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.names: dict[str, Any] = {}
        self.entries: list[Entry] = []
        self.calls: list[str] = []

    def read(self, tree: ast.Module, offset: int) -> None:
        """Assignments and calls in the order of the script."""
        try:
            for node in sorted(_interesting(tree), key=lambda one: (one.lineno, one.col_offset)):
                if isinstance(node, ast.Call):
                    self._call(node, offset)
                else:
                    self._assign(node)
        except RecursionError:
            return

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = self.value(node.value) if node.value is not None else Unknown
        for target in targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for name, one in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(name, ast.Name):
                        self.names[name.id] = self.value(one)

    def _call(self, node: ast.Call, offset: int) -> None:
        name = dotted(node.func)
        if not name or len(name) > LONGEST_NAME:
            return
        self.calls.append(name)
        short = name.rsplit(".", 1)[-1] if not name.endswith(".from_pretrained") else ".".join(name.split(".")[-2:])
        line = self.first_line + offset - 1
        for position, argument in enumerate(node.args):
            self._note(f"{short}.{position}", argument, line)
        for keyword in node.keywords:
            if keyword.arg is None:
                self._spread(short, keyword.value, line)
            else:
                self._note(f"{short}.{keyword.arg}", keyword.value, line)

    def _spread(self, call: str, node: ast.expr, line: int) -> None:
        """``**config``: the entries of a dict that was written out."""
        value = self.value(node)
        if isinstance(value, dict):
            for key, inner in value.items():
                self.entries.append(Entry(f"{call}.{key}", inner, line + node.lineno, str(key)))

    def _note(self, key: str, node: ast.expr, line: int) -> None:
        value = self.value(node)
        if value is not Unknown:
            self.entries.append(Entry(key, value, line + node.lineno, key))

    def value(self, node: ast.expr) -> Any:
        """The value that a literal, a known name or a sum of them has; Unknown for all else."""
        if isinstance(node, ast.Constant):
            return node.value[:LONGEST_STRING] if isinstance(node.value, str) else node.value
        if isinstance(node, ast.Name):
            return self.names.get(node.id, Unknown)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [one for one in map(self.value, node.elts) if one is not Unknown]
        if isinstance(node, ast.Dict):
            pairs = [(self.value(key), self.value(inner)) for key, inner in zip(node.keys, node.values) if key]  # noqa: B905
            return {str(key): inner for key, inner in pairs if Unknown not in (key, inner)}
        return self._composed(node)

    def _composed(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp):
            return self._sum(node)
        if isinstance(node, ast.UnaryOp):
            return self._turned(node)
        if isinstance(node, ast.Attribute):
            return node.attr if dotted(node).startswith(("torch.", "tf.", "jnp.")) else Unknown
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.IfExp):
            return self._chosen(node)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node)
        return Unknown

    def _sum(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
            return (left + right)[:LONGEST_STRING]
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            return Unknown
        value = combined(node.op, left, right)
        return Unknown if value is None else value

    def _turned(self, node: ast.UnaryOp) -> Any:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Unknown if inner is Unknown else not inner
        return -inner if isinstance(node.op, ast.USub) and isinstance(inner, (int, float)) else Unknown

    def _called(self, node: ast.Call) -> Any:
        """A few calls whose value is plain: dict(a=1), int(x), and the checks for bf16."""
        name = dotted(node.func).rsplit(".", 1)[-1]
        if name in SUPPORTED:
            return True
        if name == "dict" and not node.args:
            pairs = [(one.arg, self.value(one.value)) for one in node.keywords if one.arg]
            return {key: inner for key, inner in pairs if inner is not Unknown}
        if name in ("int", "str", "float", "Path") and len(node.args) == 1:
            return self.value(node.args[0])
        return Unknown

    def _chosen(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        return Unknown if test is Unknown else self.value(node.body if test else node.orelse)

    def _joined(self, node: ast.JoinedStr) -> Any:
        parts = [
            self.value(one.value) if isinstance(one, ast.FormattedValue) else self.value(one) for one in node.values
        ]
        return Unknown if Unknown in parts else "".join(map(str, parts))[:LONGEST_STRING]


def _interesting(tree: ast.Module) -> Iterator[Any]:
    return (one for one in ast.walk(tree) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.Call)))


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a chain of names; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""
