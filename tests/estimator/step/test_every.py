"""Checkpointing of every few layers: what layers share or leave to the next goes once, whichever are traced."""

from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import Run


@pytest.mark.parametrize("every", ["every-2", "every-3"])
@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "falcon-7b", "gemma-2-2b"])
@pytest.mark.parametrize("more", [{"method": "full"}, {"method": "lora"}, {"offload": {"optimizer": "cpu"}}], ids=str)
def test_no_block_is_given_back_twice(model: str, more: dict[str, Any], every: str) -> None:
    run = {"model": model, "task": "train", "attention": "eager", "gradient_checkpointing": every} | more
    peaks = []
    for length in (64, 65, 128, 129):
        found = estimate(Run.model_validate({**run, "micro_batch": 1, "seq_len": length}), explain=True).per_gpu
        assert found is not None
        assert all(block.bytes >= 0 for phase in found.phases for block in phase.blocks or ())
        peaks.append(found.allocated_peak)
    assert peaks == sorted(peaks)
