"""How many cards a run needs."""

from typing import Any

import pytest

from estimator.downgrades import applied
from estimator.estimate import estimate
from estimator.fewest import fewest_cards
from estimator.schema import Run


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "qwen2.5-7b", "method": "full", "gpu": "A100 40GB"},
        {"model": "qwen3-235b-a22b", "task": "infer", "gpu": "H20"},
        {"model": "llama-3.1-70b", "task": "serve", "engine": "vllm", "gpu": "H100", "context_len": 4096},
        {"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "parallel": {"engine": "fsdp2"}},
    ],
)
def test_one_card_fewer_does_not_hold_it(fields: dict[str, Any]) -> None:
    found = fewest_cards(Run.model_validate(fields))
    assert found is not None
    assert found.run is not None
    assert found.run.parallel is not None
    assert found.gpu_count > 1
    assert estimate(found.run).fit.verdict == "fits"
    tensor = found.run.parallel.tensor > 1
    fewer = found.gpu_count // 2 if tensor else found.gpu_count - 1
    parallel: dict[str, Any] = {"tensor": fewer} if tensor else {"data": fewer} if found.run.task == "train" else {}
    less = applied(found.run, {"gpu_count": fewer, "parallel": found.run.parallel.model_dump() | parallel})
    assert estimate(less).fit.verdict != "fits"


def test_one_card_may_be_enough() -> None:
    found = fewest_cards(Run(model="qwen2.5-0.5b", method="lora", gpu="RTX 3090"))
    assert found is not None
    assert (found.gpu_count, found.way) == (1, "")


def test_where_no_count_holds_it_none_is_named() -> None:
    found = fewest_cards(Run(model="deepseek-v3", method="full", gpu="RTX 3090"))
    assert found is not None
    assert (found.run, found.gpu_count) == (None, 8)


def test_a_count_that_was_given_is_not_asked_for() -> None:
    assert fewest_cards(Run(model="qwen2.5-7b", gpu="RTX 3090", gpu_count=2)) is None
    assert fewest_cards(Run(model="qwen2.5-7b")) is None
