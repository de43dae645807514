"""One sentence says what is wrong and how to mend it."""

from typing import Any

import pytest
from pydantic import ValidationError

from bot.problems import message_of, problem_of
from estimator.errors import EstimatorError
from estimator.schema import Run


def problem(fields: dict[str, Any], lang: str = "en") -> str:
    with pytest.raises(ValidationError) as caught:
        Run.model_validate(fields)
    return message_of(problem_of(caught.value), lang)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "no model was named; add --model 7b, --model qwen2.5-7b or a config.json object"),
        ({"model": "7b", "sqe_len": 4}, 'unknown field "sqe_len"; did you mean seq_len'),
        ({"model": "7b", "adapter": {"rnak": 4}}, 'unknown field "adapter.rnak"; did you mean rank'),
        ({"model": "7b", "qqqq": 4}, 'unknown field "qqqq"'),
        ({"model": "7b", "micro_batch": 0}, '"micro_batch" cannot be 0: it must be ≥ 1'),
        ({"model": "7b", "seq_len": -5}, '"seq_len" cannot be -5: it must be ≥ 1'),
        ({"model": "7b", "parallel": {"zero": 4}}, '"parallel.zero" cannot be 4: it must be ≤ 3'),
        (
            {"model": "7b", "method": "lroa"},
            '"method" cannot be lroa: it must be one of full, freeze, lora, dora, qlora, galore, apollo, lomo, badam',
        ),
        ({"model": "7b", "compile": "perhaps"}, '"compile" cannot be perhaps: it must be true or false'),
        ({"model": "7b", "gpu": []}, '"gpu" cannot be empty: it must be a list that is not empty'),
        ({"model": "7b", "seq_len": float("nan")}, '"seq_len" cannot be nan: it must be a finite number'),
        ({"model": "7b", "seq_len": {"mean": 5}}, '"seq_len.max" cannot be empty: it is needed'),
    ],
)
def test_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert problem(fields) == sentence


def test_sentence_in_chinese() -> None:
    assert problem({"model": "7b", "sqe_len": 4}, "zh") == '没有 "sqe_len" 这个字段；是不是 seq_len'


def test_the_estimators_own_sentence_is_kept() -> None:
    found = problem_of(EstimatorError("no such card", "没有这张卡", "gpu"))
    assert (found.field, message_of(found, "en"), message_of(found, "zh")) == ("gpu", "no such card", "没有这张卡")
