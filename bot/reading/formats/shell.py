"""Shell scripts as words: quotes, continuation lines, variables and arrays are followed, nothing is run.

``$(expr 16 / $n)`` and ``$((16 / n))`` are worked out by our own arithmetic; any other substitution stays unknown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.reading.formats.arithmetic import worked_out

UNKNOWN = "\x00"
"""Stands for what only a running shell would know."""
LONGEST_VALUE = 4096
MOST_WORDS = 20_000

_TOKEN = re.compile(
    r"(?P<space>[ \t]+|\\\n[ \t]*)|(?P<comment>(?:(?<=[\s;&|])|^)#[^\n]*)|(?P<end>\n|;;?|&&|\|\|?|&(?!>))"
    r"|(?P<single>'[^']*')|(?P<double>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<maths>\$\(\((?:[^()]|\([^()]*\))*\)\))|(?P<call>\$\((?:[^()]|\([^()]*\))*\)|`[^`\n]*`)"
    r"|(?P<variable>\$\{[^{}]*\}|\$\w+|\$[@*#?!$-])|(?P<open>\()|(?P<close>\))|(?P<escape>\\.)"
    r"|(?P<redirect>\d?>>?&?\d?|<<<?-?|<)|(?P<plain>[^\s\\'\"$`;&|()<>]+|.)",
    re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*|[@*#?!$-]|\d+)(?:\[[@*]\])?(?::?[-=]([^}]*))?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


@dataclass(slots=True)
class Command:
    """One simple command: its words with the line of each, and the variables set before it."""

    words: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)


class Shell:
    """Walks a script once, remembering variables and arrays."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.text = re.sub(r"[ \t]*[\\^`][ \t]*\r?\n", "\\\\\n", text)
        self.line = first_line
        self.values: dict[str, list[str]] = {}
        self.exported: dict[str, tuple[str, int]] = {}
        self.words = 0

    def commands(self) -> Iterator[Command]:
        """Every simple command of the script, in order."""
        command, word, quoted = Command(), None, False
        tokens = list(self._tokens())
        index = 0
        while index < len(tokens):
            kind, text, line = tokens[index]
            index += 1
            if kind == "open" and word is not None and word.endswith("=") and not command.words:
                index = self._array(word, tokens, index)
                word = None
            elif kind in ("space", "comment", "end", "open", "close"):
                if word is not None:
                    self._finish(command, word, quoted, start)
                word, quoted = None, False
                if kind in ("end", "open", "close"):
                    yield from self._done(command)
                    command = Command()
            elif kind == "redirect":
                if word is not None and not word.isdigit():
                    self._finish(command, word, quoted, start)
                word, quoted = None, False
                index = _behind_target(tokens, index)
            else:
                start = line if word is None else start
                whole = self._whole_array(kind, text, word, tokens, index)
                if whole is not None:
                    for one in whole:
                        self._add(command, one, line)
                    continue
                word = (word or "") + self._value(kind, text)
                quoted = quoted or kind in ("single", "double")
        if word is not None:
            self._finish(command, word, quoted, start)
        yield from self._done(command)

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        line = self.line
        for found in _TOKEN.finditer(self.text):
            yield str(found.lastgroup), found[0], line
            line += found[0].count("\n")

    def _array(self, word: str, tokens: list[tuple[str, str, int]], index: int) -> int:
        """``ARGS=( ... )``: its words under its name; the place behind the bracket."""
        items: list[str] = []
        current: str | None = None
        while index < len(tokens) and tokens[index][0] != "close":
            kind, text, _ = tokens[index]
            if kind in ("space", "end", "comment"):
                items += [] if current is None else [current]
                current = None
            elif (whole := self._whole_array(kind, text, current, tokens, index + 1)) is not None:
                items += whole
            else:
                current = (current or "") + self._value(kind, text)
            index += 1
        items += [] if current is None else [current]
        name = word[:-1].rstrip("+")
        self.values[name] = [*(self.values.get(name, []) if word.endswith("+=") else []), *items][:MOST_WORDS]
        return index + 1

    def _whole_array(
        self, kind: str, text: str, word: str | None, tokens: list[tuple[str, str, int]], index: int
    ) -> list[str] | None:
        """The words of ``${ARGS[@]}`` or of ``$ARGS`` that stands alone; None for anything else."""
        bare = text.strip('"')
        alone = word is None and (index >= len(tokens) or tokens[index][0] in ("space", "end", "close", "comment"))
        found = _VARIABLE.fullmatch(bare.rstrip("}")) if alone and bare.startswith("$") else None
        if found is None or kind not in ("variable", "double"):
            return None
        if "[" in bare or (kind == "variable" and found[1] in self.values):
            items = self.values.get(found[1], [])
            split = [part for one in items for part in one.split()] if len(items) == 1 and "[" not in bare else items
            return split[:MOST_WORDS]
        return [] if found[1] in "@*" else None

    def _value(self, kind: str, text: str) -> str:
        if kind == "single":
            return text[1:-1]
        if kind == "double":
            inner = re.sub(r"\\\n", "", text[1:-1])
            return self._expanded(re.sub(r"\\([\"\\$`])", lambda found: found[1], inner))
        if kind in ("variable", "call", "maths"):
            return self._expanded(text)
        return text[1:] if kind == "escape" else text

    def _expanded(self, text: str) -> str:
        """The text with its variables and sums filled in; UNKNOWN for what a running shell would give."""

        def filled(found: re.Match[str]) -> str:
            whole = found[0]
            if whole.startswith("$((") or whole.startswith("$("):
                return self._sum(whole)
            return UNKNOWN if whole.startswith("`") else self._variable(whole)

        pattern = r"\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\((?:[^()]|\([^()]*\))*\)|`[^`\n]*`|\$\{[^{}]*\}|\$\w+"
        return re.sub(pattern, filled, text)[:LONGEST_VALUE]

    def _variable(self, text: str) -> str:
        found = _VARIABLE.match(text)
        if found is None:
            return UNKNOWN
        known = self.values.get(found[1])
        if known is not None:
            return " ".join(known)[:LONGEST_VALUE]
        return found[2].strip("\"'") if found[2] is not None else UNKNOWN

    def _sum(self, text: str) -> str:
        """``$((a * 2))`` or ``$(expr 16 / $n)`` as a number; UNKNOWN for other calls."""
        inner = text[3:-2] if text.startswith("$((") else text[2:-1].strip().removeprefix("expr ")
        if not text.startswith("$((") and not text[2:].lstrip().startswith("expr "):
            return UNKNOWN
        names = {name: values[0] for name, values in self.values.items() if len(values) == 1}
        value = worked_out(re.sub(r"[$\\{}\"']", "", inner), names)
        return UNKNOWN if value is None else f"{value:g}" if value != int(value) else str(int(value))

    def _finish(self, command: Command, word: str, quoted: bool, line: int) -> None:
        found = (
            _ASSIGNMENT.fullmatch(word) if not command.words or command.words[0] in ("export", "set", "env") else None
        )
        if found and not (command.words and command.words[0] == "env" and word.startswith("-")):
            name, value = found[1], found[3]
            before = " ".join(self.values.get(name, [])) + " " if found[2] else ""
            self.values[name] = [(before + value)[:LONGEST_VALUE]]
            command.variables[name] = (self.values[name][0], line)
            return
        self._add(command, word, line)

    def _add(self, command: Command, word: str, line: int) -> None:
        self.words += 1
        if self.words <= MOST_WORDS:
            command.words.append(word)
            command.lines.append(line)

    def _done(self, command: Command) -> Iterator[Command]:
        """The command, if it is one; assignments alone stay in force for those that follow."""
        alone = not command.words or command.words[0] in ("export", "set", "declare", "local", "readonly")
        if alone:
            self.exported.update(command.variables)
        else:
            command.variables = {**self.exported, **command.variables}
            yield command


def _behind_target(tokens: list[tuple[str, str, int]], index: int) -> int:
    """The place behind the file that a redirection names."""
    while index < len(tokens) and tokens[index][0] == "space":
        index += 1
    while index < len(tokens) and tokens[index][0] not in ("space", "end", "comment", "open", "close"):
        index += 1
    return index
