"""Every byte that a step lets go was allocated before: no part of a peak is negative."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Block, Run

MODELS = ["qwen2.5-0.5b", "gpt2", "gemma-2-2b", "gemma-3-4b", "mixtral-8x7b", "olmoe", "modernbert-base", "smollm3-3b"]
KINDS = ["none", "full", "every-2", "every-3", "every-5", "selective-op", "selective-attention", "offload"]
RUNS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "task": st.just("train"),
        "method": st.sampled_from(["full", "lora", "lomo", "galore"]),
        "micro_batch": st.integers(1, 3),
        "seq_len": st.sampled_from([60, 64, 65, 513]),
        "gradient_checkpointing": st.sampled_from(KINDS),
        "framework": st.sampled_from(["trl", "transformers", "unsloth", "torchtune"]),
        "attention": st.sampled_from(["sdpa", "eager", "flash2"]),
        "stage": st.sampled_from(["sft", "reward"]),
        "optimizer_impl": st.sampled_from([None, "in-backward"]),
    }
)


def blocks(run: dict[str, Any]) -> list[Block]:
    try:
        found = estimate(Run.model_validate(run))
    except EstimatorError:
        return []
    return found.per_gpu.at_peak if found.per_gpu else []


@settings(max_examples=150, deadline=None)
@given(RUNS)
def test_no_part_of_a_peak_is_negative(run: dict[str, Any]) -> None:
    assert not [block for block in blocks(run) if block.bytes < 0]


@pytest.mark.parametrize(
    ("model", "kind"),
    [("qwen2.5-0.5b", "every-2"), ("gemma-2-2b", "selective-attention"), ("gemma-3-4b", "every-5")],
)
@pytest.mark.parametrize("framework", ["trl", "unsloth"])
def test_a_longer_row_needs_no_less(model: str, kind: str, framework: str) -> None:
    run = {
        "model": model,
        "method": "full",
        "gradient_checkpointing": kind,
        "framework": framework,
        "attention": "eager",
    }
    sizes = [sum(block.bytes for block in blocks(run | {"seq_len": length})) for length in (64, 65, 129)]
    assert 0 < sizes[0] <= sizes[1] <= sizes[2]


def test_lomo_leaves_nothing_for_zeros_first_stages() -> None:
    run = {"model": "olmoe", "method": "lomo", "gpu_count": 4, "parallel": {"engine": "deepspeed", "zero": 2}}
    with pytest.raises(EstimatorError, match="no gradients for ZeRO-2"):
        estimate(Run.model_validate(run))
