"""What a line that a step is typed as says: names and values, whichever way its tool is told things."""

import ast
import re
import shlex
from typing import Any

import yaml

PROGRAMS = (
    "torchrun",
    "accelerate launch",
    "axolotl train",
    "tune run",
    "litgpt",
    "deepspeed",
    "vllm serve",
    "llama-server",
)
"""Programs with arguments of their own; the names that follow are theirs."""
_FILE = re.compile(r"(?P<file>\S+\.(?:json|yaml)): (?P<rest>.+)")
_CALL = re.compile(r"[A-Z]\w+\(.*\)$")
_SUBCOMMAND = re.compile(r"\w+:\w+")

Said = list[tuple[str, str, str | None]]
"""Whose name it is ("" the tool's), the name, and the value; None for a switch without one."""


def said(line: str) -> Said:
    """Everything that a line names; nothing of a program that is only named."""
    if found := _FILE.fullmatch(line):
        return _in_yaml("file", found["rest"] if found["rest"].startswith("{") else "{" + found["rest"] + "}")
    program = next((one for one in PROGRAMS if f"{line} ".startswith(f"{one} ")), None)
    if program is not None:
        return [(program, name, value) for _, name, value in _flags(shlex.split(line)[len(program.split()) :])]
    if line.startswith("-"):
        return _flags(shlex.split(line))
    if _CALL.match(line):
        return _in_call(line)
    if _SUBCOMMAND.fullmatch(line):
        name, value = line.split(":")
        return [("", name, value)]
    if ": " in line:
        return _in_yaml("", "{" + line + "}")
    pairs = [line.split(" = ")] if " = " in line else [one.split("=", 1) for one in line.split(" ") if "=" in one]
    return [("", name, value.strip('"')) for name, value in pairs]


def _flags(words: list[str]) -> Said:
    """``--name value`` and ``--name``; what begins with no dash is the value of the flag before it."""
    found: Said = []
    for word in words:
        if word == "--":
            continue
        if word.startswith("-") and not word[1:].isdigit():
            name, sign, value = word.partition("=")
            found.append(("", name, value if sign else None))
        elif found and found[-1][2] is None:
            found[-1] = (*found[-1][:2], word)
    return found


def _in_yaml(owner: str, text: str) -> Said:
    return [(owner, name, value) for name, value in _leaves(yaml.safe_load(text))]


def _leaves(found: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    leaves: list[tuple[str, str]] = []
    for name, value in found.items():
        if isinstance(value, dict):
            leaves += _leaves(value, f"{prefix}{name}.")
        else:
            leaves.append((f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)))
    return leaves


def _in_call(line: str) -> Said:
    call = ast.parse(line, mode="eval").body
    assert isinstance(call, ast.Call)
    values = [(one.arg or "", ast.unparse(one.value).strip("'\"")) for one in call.keywords]
    return [("", f"{ast.unparse(call.func)}.{name}", value) for name, value in values]
