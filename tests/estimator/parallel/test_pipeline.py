"""A pipeline's stages under FSDP2 against traced ones, and what is refused of stages, experts and adapters."""

from typing import Any

import pytest

from estimator import setting
from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.estimate import completed, definite, estimate
from estimator.parallel.layouts import in_flight
from estimator.parallel.pipeline import moments
from estimator.schema import Parallel, Run
from tests.estimator.cases import cases

ROWS = list(cases("traced_pipeline.jsonl"))
DENSE = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 32,
         "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000}  # fmt: skip
EXPERTS = {"model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128,
           "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
           "num_experts": 32, "num_experts_per_tok": 4, "vocab_size": 1000}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_stage_under_fsdp2_is_as_traced(row: dict[str, Any]) -> None:
    run = Run.model_validate(row["run"])
    model = find_model(run.model)
    whole = definite(completed(run, model, None)[0], model, None)
    flight = whole.layout.in_flight if row["stage"] == "first" else whole.layout.in_flight_last
    stage = whole._replace(layout=whole.layout._replace(stage=row["stage"], in_flight=flight))
    ways = moments(stage.regime, stage.layout, row["run"]["grad_accum"])
    peaks = [setting.peak_of(stage._replace(regime=regime, layout=layout)) for regime, layout in ways]
    found = max(peaks, key=lambda one: one.live)
    assert found.live == row["measured"]["bytes"]
    assert found.phases["backward"] == row["phases"]["bwd"]
    assert found.steady == row["steady_bytes"]


def test_every_gpipe_stage_keeps_all_micro_batches_and_interleaved_chunks_add_to_the_last() -> None:
    def flights(**parallel: Any) -> tuple[int, int]:
        layout = Parallel(engine="fsdp2", pipeline=4, **parallel)
        run = Run.model_validate({"model": DENSE, "grad_accum": 12})
        return in_flight(run, layout), in_flight(run, layout, last=True)

    assert flights() == (4, 1)
    assert flights(schedule="gpipe") == (12, 12)
    assert flights(virtual_stages=2) == (6, 3)


def peak(model: dict[str, Any], **parallel: Any) -> int:
    fields = {"model": model, "framework": "torchtitan", "task": "train", "method": "full", "micro_batch": 1,
              "precision": "fsdp-mixed-bf16", "seq_len": 64, "gpu_count": 16}  # fmt: skip
    found = estimate(Run.model_validate(fields | {"parallel": parallel})).per_gpu
    assert found is not None
    return found.allocated_peak


def test_experts_that_are_dealt_out_are_gathered_in_part() -> None:
    """States are the same; what is gathered of a layer shrinks with the cards that share its experts."""
    whole = peak(EXPERTS, engine="fsdp2", data=16)
    dealt = [peak(EXPERTS, engine="fsdp2", data=16, expert=count) for count in (2, 4, 16)]
    assert whole > dealt[0] > dealt[1] > dealt[2]


def test_a_pipeline_lets_parameters_go_where_it_is_told_to() -> None:
    kept, gone = (peak(DENSE, engine="fsdp2", data=4, pipeline=4, reshard_after_forward=one) for one in (None, True))
    assert kept > gone


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"engine": "fsdp1", "pipeline": 4, "data": 4}, "fsdp2"),
        ({"engine": "deepspeed", "zero": 3, "pipeline": 4, "data": 4}, "zero 0 or 1"),
        ({"engine": "deepspeed", "zero": 1, "expert": 4, "data": 16}, "fsdp2"),
        ({"engine": "fsdp2", "expert": 6, "data": 16}, "does not divide"),
    ],
)
def test_what_no_framework_does_is_refused(layout: dict[str, Any], words: str) -> None:
    fields = {"model": EXPERTS, "task": "train", "method": "full", "gpu_count": 16, "parallel": layout}
    with pytest.raises(EstimatorError, match=words) as error:
        estimate(Run.model_validate(fields))
    assert error.value.message_zh != error.value.message


@pytest.mark.parametrize("model", ["gpt2", "phi-2", "pythia-1b", "bigscience/bloom-560m", "modernbert-base"])
@pytest.mark.parametrize("engine", ["none", "fsdp2"])
def test_stages_of_models_whose_later_layers_read_what_the_stem_made_are_refused(model: str, engine: str) -> None:
    run = Run(model=model, method="full", seq_len=256, gpu_count=2, parallel=Parallel(engine=engine, pipeline=2))
    with pytest.raises(EstimatorError, match="pipeline stages of"):
        estimate(run)
