"""torch.compile: what its graphs keep, held against what torch 2.13's partitioner saved for a small Llama."""

from typing import Any

import pytest

from estimator.compiled import loss_of
from estimator.estimate import estimate
from estimator.schema import Estimate, Run

LAYERS, HIDDEN, INTERMEDIATE, BATCH, LENGTH = 4, 256, 704, 2, 512
LLAMA = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1024,
}  # fmt: skip
SAVED_EAGER, SAVED_COMPILED = 51444, 37620
"""Bytes per token that transformers 5.24's layers saved for the backward, as they are and each layer compiled."""
LAST_NORM = 4 * HIDDEN
"""The last norm's fp32 input: the layers alone were compiled there."""


def answer(**fields: Any) -> Estimate:
    run = {
        "model": LLAMA, "method": "full", "precision": "bf16", "framework": "transformers", "micro_batch": BATCH,
        "seq_len": LENGTH, "attention": "sdpa", "gradient_checkpointing": "none", "loss": "fused-ce-logits",
    }  # fmt: skip
    return estimate(Run.model_validate(run | fields))


def held(found: Estimate, item: str) -> int:
    assert found.per_gpu is not None
    return sum(block.bytes for block in found.per_gpu.at_peak if block.item == item)


def test_a_compiled_layer_keeps_what_the_partitioner_saved() -> None:
    less = held(answer(), "activations") - held(answer(compile=True), "activations")
    assert less == pytest.approx(BATCH * LENGTH * (SAVED_EAGER - SAVED_COMPILED + LAST_NORM), rel=0.002)


def test_a_compiled_loss_writes_no_fp32_logits() -> None:
    assert held(answer(compile=True, loss="standard"), "logits_loss") == pytest.approx(
        BATCH * LENGTH * 1024 * 2, rel=0.02
    )


@pytest.mark.parametrize(
    ("fields", "loss"),
    [({}, "compiled"), ({"framework": "torchtitan"}, "standard"), ({"stage": "dpo"}, "standard")],
)
def test_a_loss_outside_of_the_model_is_not_compiled(fields: dict[str, Any], loss: str) -> None:
    given = {"framework": "transformers", "stage": "sft", "loss": "standard", "compile": True}
    assert loss_of(Run.model_validate(given | {"model": LLAMA} | fields)) == loss


def test_the_answer_says_that_buffers_are_not_followed() -> None:
    assert any(one.field == "compile" for one in answer(compile=True).notes)
