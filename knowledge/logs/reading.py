"""A log read: numbers, phase, and the words that matter."""

import re
from dataclasses import dataclass

from knowledge.logs.message import Message, derived_from, read_message
from knowledge.logs.phase import phase_of, steps_done
from knowledge.logs.text import bounded, cleaned, excerpt
from knowledge.phrases import Text

LONGEST_LINE = 400
"""Longer lines are data, unless they are a launch line."""
SPACES = re.compile(r"\s+")
TRACE_LINE = re.compile(
    r'^\s*(?:Traceback|File "|\^+$|~+\^|return |raise |self\.|\w+ = |[\w.]+\(.*\)$|(?:-+> *)?\d+ {2,}\S)'
    r"|site-packages|\d%\|"
)
CHOSEN = re.compile(
    r"""^\s*\w+ = (?:[\d.e-]+|"[^"]*"|'[^']*'|True|False),?\s*(?:#.*)?$|["'][A-Za-z][\w.-]*/[\w.-]+["']"""
)
"""Lines of code in which somebody chose something: a plain value, or a model by the name that it has on the hub."""
PRINTED_NUMBERS = re.compile(
    r"(?:\S*Error:? *)?(?:(?:CUDA|HIP|NPU|MPS backend|XPU) out of memory)?[^.\n]{0,20}"
    r"(?:Tried to allocate|total capac|by PyTorch|reserved in total|MPS allocated|cache blocks|KV cache"
    r"|[Ff]ree memory on|emory profiling|model weights|blocks:|buffer size).*"
    r"|\b\d[\d.,]* ?[KMG]iB\b|https?://\S+|\S+\.(?:cc|cpp|cu|c):\d+\S*|per CPU.*|.*\|.*offload_\w+ *=.*"
)
"""What programs print about memory: its numbers are no cards and no lengths."""
OF_NUMBERS = ("Tried to allocate", "total capac", "by PyTorch", "reserved in total", "MPS allocated", "cache blocks",
              "KV cache", "ree memory on", "emory profiling", "model weights", "blocks:", "buffer size", "iB", "://",
              ".c:", ".cc:", ".cpp:", ".cu:", "per CPU", "offload_")  # fmt: skip
"""A line without any of them has none of these numbers."""


@dataclass(frozen=True, slots=True)
class Log:
    """What was read: ``flat`` is the excerpt on one line, ``text`` the same in lower case."""

    lines: str
    flat: str
    text: Text
    message: Message
    derived: dict[str, int]
    phase: str
    ranks: frozenset[int]
    steps_done: int | None

    @property
    def lowered(self) -> str:
        """The excerpt on one line in lower case."""
        return self.text.lowered

    def about_the_run(self) -> str:
        """The lines that people and launchers wrote, without the numbers and frames that programs printed."""
        lines = (line if "--" in line else line[:LONGEST_LINE] for line in self.lines.split("\n"))
        kept = [line for line in lines if not TRACE_LINE.search(line) or CHOSEN.search(line)]
        return "\n".join(_without_numbers(line) for line in kept)


def _without_numbers(line: str) -> str:
    return PRINTED_NUMBERS.sub(" ", line) if any(mark in line for mark in OF_NUMBERS) else line


def read_log(text: str) -> Log:
    """Read a paste or a log of any length; nothing in it raises."""
    raw = bounded(text)
    if not raw.isascii():
        raw = raw.encode("utf-8", "replace").decode()  # half a character pair can be printed by nobody
    done = steps_done(raw)
    whole, ranks = cleaned(raw)
    lines = excerpt(whole)
    flat = SPACES.sub(" ", lines)
    lowered = Text(flat.lower())
    message = read_message(flat, lowered.lowered, lines)
    return Log(lines, flat, lowered, message, derived_from(message), phase_of(lowered, done), ranks, done)
