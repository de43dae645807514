"""A step under FSDP2 that is recorded with labels for sizes and then resized is the step traced with the sizes."""

from typing import Any

import pytest

from estimator.catalogue import find_model
from estimator.estimate import completed, definite
from estimator.inventory import inventory
from estimator.parallel.runtimes import fsdp2_units
from estimator.parallel.units import labelled
from estimator.schema import Run
from estimator.setting import Setting
from estimator.step.assembly import Recording
from estimator.step.training import trace_training

MODEL = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4000,
         "tie_word_embeddings": False}  # fmt: skip
STEPS: list[dict[str, Any]] = [
    {"parallel": {"wrap": "layers"}},
    {"parallel": {"wrap": "titan"}, "gradient_checkpointing": "full"},
    {"parallel": {"wrap": "root"}},
    {"parallel": {"wrap": "layers", "reshard_after_forward": False}, "grad_accum": 4},
    {"parallel": {"wrap": "layers"}, "stage": "dpo"},
    {"parallel": {"wrap": "layers", "replicate": 2}, "method": "lora"},
]


def under_fsdp2(cards: int, **fields: Any) -> Setting:
    parallel = {"engine": "fsdp2", "data": cards} | fields.pop("parallel")
    given = {"model": MODEL, "framework": "transformers", "method": "full", "precision": "fsdp-mixed-bf16",
             "seq_len": 256, "micro_batch": 1, "gpu_count": cards * parallel.get("replicate", 1)}  # fmt: skip
    run, model = Run.model_validate(given | fields | {"parallel": parallel}), find_model(MODEL)
    return definite(completed(run, model, None)[0], model, None)


def traced(found: Setting) -> Recording:
    return trace_training(found.arch, inventory(found.arch), found.regime, found.layout)


def recorded(found: Setting) -> tuple[Recording, dict[int, int]]:
    parts = inventory(found.arch)
    units, sizes = labelled(fsdp2_units(found.arch, parts, found.regime, found.layout))
    return trace_training(found.arch, parts, found.regime, found.layout._replace(shards=1), units), sizes


@pytest.mark.parametrize("fields", STEPS, ids=lambda fields: "-".join(map(str, fields["parallel"].values())))
def test_a_recording_takes_the_sizes_of_any_number_of_cards(fields: dict[str, Any]) -> None:
    of_two, of_eight = under_fsdp2(2, **fields), under_fsdp2(8, **fields)
    (step, two), (same, eight) = recorded(of_two), recorded(of_eight)
    assert step == same
    assert step.resized(two) == traced(of_two)
    assert step.resized(eight) == traced(of_eight)
    assert step.resized(two) != step.resized(eight)
