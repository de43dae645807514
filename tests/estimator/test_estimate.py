"""What every estimate keeps to, whatever the run."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run

MODELS = ("qwen2.5-0.5b", "llama-3.2-1b", "qwen3-0.6b", "gpt2", "gemma-2-2b", "olmoe", "phi-3-mini", "bloom-560m")


@st.composite
def training_runs(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "model": draw(st.sampled_from(MODELS)),
        "method": draw(st.sampled_from(("full", "lora", "qlora"))),
        "micro_batch": draw(st.integers(1, 8)),
        "seq_len": draw(st.integers(16, 1000)),
        "gradient_checkpointing": draw(st.sampled_from(("none", "full"))),
        "loss": draw(st.sampled_from(("standard", "chunked", "fused"))),
        "optimizer": draw(st.sampled_from(("adamw", "adamw-8bit", "sgd"))),
    }


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(fields))


def allocated(fields: dict[str, Any]) -> int:
    per_gpu = answer(**fields).per_gpu
    assert per_gpu is not None
    return per_gpu.allocated_peak


@settings(max_examples=60, deadline=None)
@given(training_runs())
def test_the_parts_add_up_to_the_peak(fields: dict[str, Any]) -> None:
    per_gpu = answer(**fields).per_gpu
    assert per_gpu is not None
    assert sum(block.bytes for block in per_gpu.at_peak) == per_gpu.allocated_peak
    assert max(phase.allocated_peak for phase in per_gpu.phases) == per_gpu.allocated_peak
    assert all(block.bytes > 0 and block.why and block.why_zh for block in per_gpu.at_peak)


@settings(max_examples=60, deadline=None)
@given(training_runs())
def test_the_three_numbers_are_ordered(fields: dict[str, Any]) -> None:
    per_gpu = answer(**fields).per_gpu
    assert per_gpu is not None
    assert per_gpu.interval.low <= per_gpu.allocated_peak <= per_gpu.interval.high
    held, shown = per_gpu.reserved_peak, per_gpu.device_peak
    assert held.low <= held.expected <= held.high
    assert shown.low <= shown.expected <= shown.high
    assert shown.expected > held.expected > per_gpu.allocated_peak


@settings(max_examples=40, deadline=None)
@given(training_runs(), st.integers(1, 3))
def test_a_larger_batch_never_needs_less(fields: dict[str, Any], more: int) -> None:
    assert allocated(fields | {"micro_batch": fields["micro_batch"] + more}) >= allocated(fields)


@settings(max_examples=30, deadline=None)
@given(training_runs())
def test_the_largest_batch_fits_and_the_next_does_not(fields: dict[str, Any]) -> None:
    largest = answer(**fields, gpu="RTX 3090").max
    assert largest is not None
    if largest.micro_batch == 0:
        return
    inside = answer(**fields | {"micro_batch": largest.micro_batch}, gpu="RTX 3090")
    outside = answer(**fields | {"micro_batch": largest.micro_batch + 1}, gpu="RTX 3090")
    assert inside.fit.verdict == "fits"
    assert outside.fit.verdict != "fits"


def test_only_the_model_is_required() -> None:
    found = answer(model="qwen2.5-0.5b")
    assert found.per_gpu is not None
    assert {assumption.field for assumption in found.assumptions} >= {"method", "precision", "micro_batch", "seq_len"}
    assert all(assumption.why and assumption.why_zh for assumption in found.assumptions)


def test_nothing_that_was_given_is_assumed() -> None:
    found = answer(model="qwen2.5-0.5b", method="lora", micro_batch=2, loss="standard")
    assert not {"method", "micro_batch", "loss"} & {assumption.field for assumption in found.assumptions}


def test_an_assumed_loss_comes_with_what_the_other_would_need() -> None:
    found = estimate(Run(model="qwen2.5-0.5b", method="lora", micro_batch=8), others=True)
    assert found.per_gpu is not None
    plain = next(other for other in found.alternatives if other.change == {"loss": "standard"})
    asked = {"model": "qwen2.5-0.5b", "method": "lora", "micro_batch": 8, "loss": "standard"}
    assert plain.allocated_peak == allocated(asked)


def test_accumulation_adds_one_copy_of_the_gradients() -> None:
    once = answer(model="qwen2.5-0.5b", method="full", precision="bf16", optimizer="sgd", micro_batch=4)
    twice = answer(model="qwen2.5-0.5b", method="full", precision="bf16", optimizer="sgd", micro_batch=4, grad_accum=2)
    assert once.per_gpu is not None
    assert twice.per_gpu is not None
    assert twice.per_gpu.allocated_peak >= once.per_gpu.allocated_peak


def test_a_quantised_upload_means_its_base_and_format() -> None:
    found = answer(model="TheBloke/Llama-2-7B-GPTQ", task="infer")
    assert found.run is not None
    assert str(found.run.weight_format).startswith("gptq")


def test_bf16_on_a_card_without_it_is_flagged() -> None:
    found = answer(model="qwen2.5-0.5b", method="lora", precision="bf16", gpu="T4")
    assert any(note.field == "precision" and "fp16" in note.why for note in found.notes)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"optimizer": "adamq"}, "optimizer"),
        ({"gradient_checkpointing": "sometimes"}, "gradient_checkpointing"),
        ({"method": "full", "weight_format": "nf4"}, "weight_format"),
        ({"vision": {"images": 1}}, "vision"),
        ({"parallel": {"engine": "fsdp1", "data": 8, "expert": 2}}, "parallel"),
        ({"parallel": {"engine": "fsdp2", "data": 8, "tensor": 2}, "method": "dora"}, "parallel"),
        ({"parallel": {"engine": "fsdp2", "data": 8}, "gpu_count": 4}, "gpu_count"),
        ({"offload": {"optimizer": "cpu"}, "parallel": {"engine": "ddp", "data": 2}}, "offload"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(EstimatorError) as caught:
        answer(model="qwen2.5-0.5b", **fields)
    assert caught.value.field == field
    assert caught.value.message_zh != caught.value.message


def test_loading_can_need_more_than_generating() -> None:
    plain = answer(model="llama-3.1-8b", task="infer", context_len=16, new_tokens=1)
    cast = answer(
        model="llama-3.1-8b",
        task="infer",
        context_len=16,
        new_tokens=1,
        precision="bf16",
        details={"load_dtype": "fp32"},
    )
    assert plain.per_gpu is not None
    assert cast.per_gpu is not None
    assert plain.per_gpu.peak_phase == "prefill"
    assert cast.per_gpu.peak_phase == "load"
    assert cast.per_gpu.allocated_peak > 1.9 * plain.per_gpu.allocated_peak
    assert sum(block.bytes for block in cast.per_gpu.at_peak) == cast.per_gpu.allocated_peak


def test_packing_on_the_card_holds_one_linear_in_16_bit() -> None:
    found = answer(model="llama-3.1-8b", task="infer", weight_format="nf4", context_len=16, new_tokens=1).per_gpu
    assert found is not None
    load = next(phase for phase in found.phases if phase.phase == "load")
    weights = next(block for block in found.at_peak if block.item == "weights")
    workspace = next(block for block in found.at_peak if block.item == "workspace")
    assert load.allocated_peak - weights.bytes - workspace.bytes == 4096 * 14336 * 2


def test_precisions_of_sharded_engines_are_refused_on_one_card() -> None:
    with pytest.raises(EstimatorError, match="precision"):
        answer(model="qwen2.5-0.5b", precision="deepspeed-bf16")
