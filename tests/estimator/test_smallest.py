"""The smallest card for a run that names none."""

import pytest

from estimator.catalogue.sizes import sizes_gb
from estimator.estimate import estimate
from estimator.schema import Run
from estimator.smallest import smallest_card_gb


@pytest.mark.parametrize("engine", ["hf", "vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "llama-3.1-8b", "qwen3-30b-a3b"])
def test_it_holds_the_run_and_no_smaller_one_does(engine: str, model: str) -> None:
    run = Run(model=model, task="infer", engine=engine, context_len=8192, new_tokens=1)
    size = smallest_card_gb(estimate(run))
    assert size is not None
    sizes = sizes_gb(0)
    assert estimate(run.model_copy(update={"gpu": f"{size}GB"})).fit.verdict == "fits"
    if (at := sizes.index(size)) > 0:
        assert estimate(run.model_copy(update={"gpu": f"{sizes[at - 1]}GB"})).fit.verdict != "fits"


def test_a_card_that_is_named_needs_none() -> None:
    assert smallest_card_gb(estimate(Run(model="qwen2.5-0.5b", gpu="24GB"))) is None


def test_what_no_card_holds_has_none() -> None:
    assert smallest_card_gb(estimate(Run(model="deepseek-v3", task="serve", engine="vllm", context_len=1024))) is None
