"""JSON lines in, JSON lines out: in order, a bad line named and passed over."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from bot.cli import ANSWERED, OUR_FAULT, WRONG_INPUT
from bot.problems import hint, problem_of
from bot.texts import say
from estimator.errors import EstimatorError
from estimator.schema import Problem

LONGEST_LINE = 4 * 2**20


class BadLine(Exception):
    """A line that cannot be read: the key and values of the sentence that says why, and the name of the wrong field.

    ``near`` holds the fields that exist, of which the sentence hints at the one that was meant.
    """

    def __init__(self, key: str, name: str | None = None, near: Sequence[str] = (), **values: Any) -> None:
        super().__init__(key)
        self.key, self.name, self.near, self.values = key, name, near, values

    def problem(self) -> Problem:
        """The sentence in both languages."""
        return Problem(field=self.name, message=self._said("en"), message_zh=self._said("zh"))

    def _said(self, lang: str) -> str:
        hinted = {"hint": hint(lang, str(self.name), list(self.near))} if self.near else {}
        return say(lang, self.key, **self.values, **hinted)


def run_lines(work: Callable[[dict[str, Any]], BaseModel], source: BinaryIO | None = None) -> int:
    """Answer every line of standard input with ``work``; the exit status says whether any went wrong."""
    status = ANSWERED
    for text, wrong in _answers(source or sys.stdin.buffer, partial(_answered, work=work)):
        status = max(status, wrong) if OUR_FAULT not in (status, wrong) else OUR_FAULT
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return status


def _answers(source: BinaryIO, answer: Callable[[bytes], tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """The answers to all lines, those of a pipe or file side by side."""
    from bot.cli.workers import arriving, cores, side_by_side  # a single question need not wait for them

    if not isinstance(source, BufferedReader) or cores() < 2:
        yield from map(answer, _lines(source))
    else:
        full = ([line for line in batch if line.strip()] for batch in arriving(source, LONGEST_LINE + 1))
        yield from side_by_side(full, answer, cores())


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Lines that hold something; of a line that is too long only its beginning, which then is named as such."""
    while line := source.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = source.readline(LONGEST_LINE)
        if line.strip():
            yield line


def _answered(line: bytes, work: Callable[[dict[str, Any]], BaseModel]) -> tuple[str, int]:
    fields: dict[str, Any] = {}
    try:
        fields = _object(line)
        return _dumped(work(dict(fields))), ANSWERED
    except BadLine as error:
        return _failed(fields, error.problem()), WRONG_INPUT
    except (ValidationError, EstimatorError) as error:
        return _failed(fields, problem_of(error)), WRONG_INPUT
    except Exception as error:
        fault = BadLine("cli.fault", detail=f"{type(error).__name__}: {error}")
        return _failed(fields, fault.problem()), OUR_FAULT


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise BadLine("cli.line_too_long", limit=f"{LONGEST_LINE:,}")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine("cli.bad_json", detail=str(error)[:120]) from None
    if not isinstance(value, dict):
        raise BadLine("cli.not_object", kind=type(value).__name__)
    return value


def _dumped(answer: BaseModel) -> str:
    try:
        return answer.model_dump_json(by_alias=True)
    except ValueError:  # half of a surrogate pair, which JSON escapes can smuggle in
        return json.dumps(answer.model_dump(by_alias=True))


def _failed(fields: dict[str, Any], problem: Problem) -> str:
    return json.dumps({"id": fields.get("id"), "error": problem.model_dump()}, ensure_ascii=True)
