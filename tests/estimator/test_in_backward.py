"""Optimizers that step inside the backward."""

from typing import Any

import pytest

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import PerGpu, Run

GIB = 1 << 30
IN_BACKWARD = {"optimizer_impl": "in-backward"}
LLAMA_3B = {
    "model": "meta-llama/Llama-3.2-3B", "framework": "torchtune", "method": "full", "precision": "bf16",
    "optimizer": "adamw", "optimizer_impl": "fused", "micro_batch": 2, "seq_len": 4096, "packing": True,
    "gradient_checkpointing": "none", "loss": "standard", "gpu": "A100 80GB",
}  # fmt: skip
COMPILED = {"compile": True}
CHUNKED = COMPILED | {"loss": "chunked"}
CHECKPOINTED = CHUNKED | {"gradient_checkpointing": "full"}
PUBLISHED = [
    ({}, 60.0),
    (COMPILED, 51.0),
    (CHUNKED, 42.9),
    (CHECKPOINTED, 24.9),
    (CHECKPOINTED | IN_BACKWARD, 23.1),
]
"""README of pytorch/torchtune, cumulative list for Llama 3.2 3B: GiB of peak active memory."""


def per_gpu(**fields: Any) -> PerGpu:
    found = estimate(Run.model_validate(LLAMA_3B | fields)).per_gpu
    assert found is not None
    return found


@pytest.mark.parametrize(("fields", "gib"), PUBLISHED)
def test_torchtunes_published_list(fields: dict[str, Any], gib: float) -> None:
    assert per_gpu(**fields).allocated_peak / GIB == pytest.approx(gib, rel=0.05)


def test_each_step_makes_a_copy_of_one_parameter_only() -> None:
    found = per_gpu(**CHECKPOINTED | IN_BACKWARD)
    eight = per_gpu(**CHECKPOINTED | IN_BACKWARD, optimizer="adamw-8bit")
    more = (found.allocated_peak - found.steady) - (eight.allocated_peak - eight.steady)
    assert 0 <= more <= 128_256 * 3072 * 2


def test_no_gradients_are_left_to_accumulate() -> None:
    with pytest.raises(EstimatorError, match="leaves no gradients for 4 micro-batches") as caught:
        per_gpu(**IN_BACKWARD | {"grad_accum": 4})
    assert caught.value.field == "grad_accum"


def test_cards_that_share_the_work_keep_their_gradients_and_the_answer_says_so() -> None:
    sharded = CHECKPOINTED | {"gpu_count": 2, "parallel": {"engine": "fsdp2"}}
    found = estimate(Run.model_validate(LLAMA_3B | sharded | IN_BACKWARD))
    assert any(note.value == "in-backward" for note in found.notes)
    waiting = per_gpu(**sharded | {"optimizer_impl": "foreach"})
    assert found.per_gpu is not None and found.per_gpu.allocated_peak == waiting.allocated_peak
