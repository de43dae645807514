"""JSON lines: in order, and a bad line stops no other."""

import io
import json
from typing import Any

import pytest

from bot.cli import ANSWERED, OUR_FAULT, WRONG_INPUT
from bot.cli.lines import LONGEST_LINE, run_lines
from estimator.errors import EstimatorError
from estimator.schema import Problem, Run


def work(fields: dict[str, Any]) -> Problem:
    number = fields.pop("id", None)
    run = Run.model_validate(fields)
    if run.model == "crash":
        raise ZeroDivisionError("oops")
    if run.model == "none":
        raise EstimatorError("no such model", "没有这个模型", "model")
    return Problem(field=str(number), message=str(run.model))


def answers(text: str | bytes, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    status = run_lines(work, io.BytesIO(text.encode() if isinstance(text, str) else text))
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_answers_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answers('{"id": 1, "model": "a"}\n\n{"id": 2, "model": "b"}', capsys)
    assert status == ANSWERED
    assert [one["message"] for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "number", "words"),
    [
        ("{nonsense", None, "line is not JSON"),
        ("[1]", None, "line holds list, not an object"),
        ('{"id": 7, "model": "a", "sqe_len": 1}', 7, 'unknown field "sqe_len"; did you mean seq_len'),
        ('{"id": "x", "model": "none"}', "x", "no such model"),
        ('{"id": 7, "model": "a", "micro_batch": true}', 7, '"micro_batch" cannot be True: it must be a whole number'),
        ('{"id": 7, "model": "a", "samples": false}', 7, '"samples" cannot be False: it must be a number'),
        ('{"id": 7, "model": "a", "parallel": {"zero": true}}', 7, '"parallel.zero" cannot be True'),
        ('{"id": 7}', 7, "no model was named"),
        ("[" * 100_000, None, "line is not JSON"),
    ],
)
def test_a_bad_line_is_named_and_passed_over(
    line: str, number: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = answers(line + '\n{"id": 2, "model": "b"}', capsys)
    assert status == WRONG_INPUT
    assert found[0]["id"] == number
    assert words in found[0]["error"]["message"]
    assert found[0]["error"]["message_zh"]
    assert found[1]["message"] == "b"


def test_bytes_that_are_no_text_are_a_bad_line(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answers(b'\xff\xfe\n{"model": "b"}', capsys)
    assert status == WRONG_INPUT
    assert len(found) == 2


def test_a_line_without_end_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answers('{"model": "' + "a" * (2 * LONGEST_LINE) + '"}\n{"model": "b"}', capsys)
    assert status == WRONG_INPUT
    assert "longer than" in found[0]["error"]["message"]
    assert found[1]["message"] == "b"


def test_our_own_fault_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answers('{"model": "crash"}\n{"model": "none"}\n{"model": "b"}', capsys)
    assert status == OUR_FAULT
    assert "fault of ours" in found[0]["error"]["message"]
    assert found[2]["message"] == "b"
