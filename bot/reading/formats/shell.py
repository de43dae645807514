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
LONGEST_WORD = 2**16
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
_JOB = re.compile(r"(?:--|-)(nodes|N|ntasks-per-node|gpus-per-node|gres|ntasks)[= ]+([\w:]+)")
JOB_VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",), "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"), "gres": ("SLURM_GPUS_ON_NODE",),
}  # fmt: skip
"""Variables that Slurm sets by a job's options (sbatch(1), output environment variables)."""


@dataclass(slots=True)
class Command:
    """One simple command: its words with the line of each, and the variables set before it."""

    words: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)


class Shell:
    """Walks a script once, remembering variables and arrays."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.text = re.sub(r"(?:\\|(?<=[ \t])[\^`])[ \t]*\n", "\\\\\n", text)
        self.line = first_line
        self.values: dict[str, list[str]] = {}
        self.exported: dict[str, tuple[str, int]] = {}
        self.words = 0
        self.command, self.start = Command(), first_line
        self.word: str | None = None

    def commands(self) -> Iterator[Command]:
        """Every simple command of the script, in order."""
        tokens = list(self._tokens())
        index = 0
        while index < len(tokens):
            kind, text, line = tokens[index]
            index += 1
            if kind == "open" and self.word is not None and self.word.endswith("=") and not self.command.words:
                index = self._array(self.word, tokens, index)
                self.word = None
            elif kind == "comment" and text.startswith("#SBATCH"):
                self._note_job(text)
            elif kind in ("space", "comment", "end", "open", "close"):
                self._finish()
                yield from self._done() if kind in ("end", "open", "close") else ()
            elif kind == "redirect":
                self.word = None if (self.word or "").isdigit() else self.word
                self._finish()
                index = _behind_target(tokens, index)
            else:
                self._extend(kind, text, line, tokens, index)
        self._finish()
        yield from self._done()

    def _note_job(self, text: str) -> None:
        """``#SBATCH --nodes=2``: what Slurm tells the script of its job."""
        for name, value in _JOB.findall(text):
            count = value.rsplit(":", 1)[-1]
            for variable in JOB_VARIABLES[name] if count.isdigit() else ():
                self.values[variable] = [count]

    def _extend(self, kind: str, text: str, line: int, tokens: list[tuple[str, str, int]], index: int) -> None:
        """Add a part to the word that is being read; an array that stands alone is several words."""
        whole = self._whole_array(kind, text, self.word, tokens, index)
        if whole is not None:
            for one in whole:
                self._add(one, line)
            return
        self.start = line if self.word is None else self.start
        self.word = ((self.word or "") + self._value(kind, text))[:LONGEST_WORD]

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
            if whole.startswith("$("):
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

    def _finish(self) -> None:
        """The word that was read goes to the command, or to the variables where it assigns one."""
        word, self.word = self.word, None
        if word is None:
            return
        first = self.command.words[0] if self.command.words else ""
        found = _ASSIGNMENT.fullmatch(word) if first in ("", "export", "set", "env") else None
        if found is None:
            self._add(word, self.start)
            return
        name, value = found[1], found[3]
        before = " ".join(self.values.get(name, [])) + " " if found[2] else ""
        self.values[name] = [(before + value)[:LONGEST_VALUE]]
        self.command.variables[name] = (self.values[name][0], self.start)

    def _add(self, word: str, line: int) -> None:
        self.words += 1
        if self.words <= MOST_WORDS:
            self.command.words.append(word)
            self.command.lines.append(line)

    def _done(self) -> Iterator[Command]:
        """The command, if it is one; assignments alone stay in force for those that follow."""
        command, self.command = self.command, Command()
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
