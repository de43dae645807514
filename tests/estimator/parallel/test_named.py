"""Layouts that a person names in part: the engine comes from the framework, or from what is asked of it."""

from typing import Any

import pytest

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Block, Estimate, Run

LLAMA: dict[str, Any] = {"model": "llama-3.1-8b", "task": "train", "method": "full", "seq_len": 512}
GIB = 1 << 30


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(LLAMA | fields))


def blocks(found: Estimate) -> list[Block]:
    assert found.per_gpu is not None
    return found.per_gpu.at_peak


def peak(found: Estimate) -> int:
    assert found.per_gpu is not None
    return found.per_gpu.allocated_peak


@pytest.mark.parametrize("engine", ["megatron", "none"])
def test_a_layout_larger_than_the_cards_says_how_many_it_needs(engine: str) -> None:
    with pytest.raises(EstimatorError, match="needs 16 cards"):
        answer(gpu_count=8, parallel={"engine": engine, "tensor": 8, "pipeline": 2})


@pytest.mark.parametrize("clipping", [False, True])
def test_a_last_stage_without_embedding_is_estimated(clipping: bool) -> None:

    found = answer(gpu_count=4, parallel={"tensor": 2, "pipeline": 2}, gradient_clipping=clipping)
    assert peak(found) > 0


def test_the_framework_brings_the_engine_of_a_layout_without_one() -> None:
    named = answer(framework="megatron", gpu_count=8, parallel={"tensor": 8, "engine": "megatron"})
    unnamed = answer(framework="megatron", gpu_count=8, parallel={"tensor": 8})
    assert peak(unnamed) == peak(named)
    assert unnamed.run.parallel is not None and unnamed.run.parallel.engine == "megatron"
    assert any(one.field == "parallel.engine" for one in unnamed.assumptions)


def test_a_stated_engine_none_stays() -> None:
    found = answer(framework="megatron", gpu_count=8, parallel={"tensor": 8, "engine": "none"})
    assert found.run.parallel is not None and found.run.parallel.engine == "none"


@pytest.mark.parametrize(("parameters", "zero"), [("none", 2), ("cpu", 3)])
def test_offloading_without_an_engine_is_deepspeeds(parameters: str, zero: int) -> None:
    found = answer(gpu="RTX 4090", offload={"optimizer": "cpu", "parameters": parameters})
    assert found.run.parallel is not None
    assert (found.run.parallel.engine, found.run.parallel.zero) == ("deepspeed", zero)
    assert next(one for one in found.assumptions if one.field == "parallel.engine").value == "deepspeed"
    assert found.host is not None and found.host.ram > 60 * GIB


def test_offloaded_activations_need_no_engine() -> None:
    found = answer(offload={"activations": "cpu"})
    assert found.run.parallel is not None and found.run.parallel.engine == "none"


@pytest.mark.parametrize(("model", "tensor"), [("qwen3-next-80b-a3b", 4), ("qwen2.5-7b", 8)])
def test_ranks_that_cannot_share_the_heads_are_refused(model: str, tensor: int) -> None:
    with pytest.raises(EstimatorError, match="does not divide the model's heads"):
        answer(model=model, gpu_count=tensor, attention="flash2", parallel={"tensor": tensor})


def test_tensor_parallel_inference_names_the_engines_that_do_it() -> None:
    with pytest.raises(EstimatorError, match="vllm") as caught:
        estimate(Run.model_validate({"model": "llama-3-70b", "task": "infer", "parallel": {"tensor": 2}}))
    assert "None" not in caught.value.message and "vllm" in caught.value.message_zh


@pytest.mark.parametrize("method", ["dora", "qlora", "freeze"])
def test_what_tensor_parallel_is_not_estimated_with_is_refused_with_a_way_out(method: str) -> None:
    with pytest.raises(EstimatorError, match="fsdp2"):
        answer(method=method, gpu_count=8, parallel={"tensor": 8})


LAYOUTS: list[dict[str, Any]] = [
    {"parallel": {"engine": "deepspeed", "zero": 3}, "offload": {"optimizer": "cpu", "parameters": "cpu"}},
    {"parallel": {"engine": "deepspeed", "zero": 3}},
    {"parallel": {"engine": "deepspeed", "zero": 2}},
    {"parallel": {"engine": "megatron"}},
    {"parallel": {"engine": "fsdp2"}, "offload": {"optimizer": "cpu", "parameters": "cpu"}},
    {"parallel": {"engine": "fsdp1"}},
    {"framework": "megatron", "parallel": {"tensor": 2, "pipeline": 2}},
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cards", [1, 4])
@pytest.mark.parametrize("method", ["full", "qlora"])
def test_every_reason_reads_as_a_sentence(layout: dict[str, Any], cards: int, method: str) -> None:
    if "tensor" in layout["parallel"] and (cards == 1 or method != "full"):
        return
    found = answer(method=method, gpu_count=cards, **layout)
    for why in (text for block in blocks(found) for text in (block.why, block.why_zh)):
        assert why and why[0] not in ";；:：（，, "
    told = " ".join([*(block.why for block in blocks(found)), *(note.why for note in found.notes)])
    told_zh = " ".join([*(block.why_zh for block in blocks(found)), *(note.why_zh for note in found.notes)])
    assert not {"over 1 cards", "to 1 cards", "1 further micro-batches"} & {told} and " 1 cards" not in told
    assert "1 张卡分担" not in told_zh and "1 卡分" not in told_zh.replace("11 卡分", "")


@pytest.mark.parametrize("engine", ["deepspeed", "megatron"])
def test_moments_of_fp32_copies_are_told_as_fp32(engine: str) -> None:
    found = answer(gpu_count=2, parallel={"engine": engine, "zero": 1})
    states = next(block for block in blocks(found) if block.item == "optimizer_states")
    assert "fp32" in states.why and "fp32" in states.why_zh


def test_fp32_shards_under_bf16_are_told() -> None:
    fields = {"gpu_count": 2, "framework": "trl", "precision": "bf16", "autocast": True}
    found = answer(**fields, parallel={"engine": "fsdp2", "zero": 3})
    held = next(block for block in blocks(found) if block.item == "weights")
    assert "stored in fp32" in held.why and "fp32" in held.why_zh


@pytest.mark.parametrize(("engine", "cached"), [("fsdp1", False), ("fsdp2", True)])
def test_autocast_caches_no_copies_of_what_fsdp1_hands_out(engine: str, cached: bool) -> None:
    """Views are never cached (aten/src/ATen/autocast_mode.cpp); torch 2.13's FSDP2 hands out parameters."""
    found = answer(
        method="lora", precision="bf16", autocast=True, adapter={"rank": 16, "dtype": "fp32"}, seq_len=4096,
        loss="standard", gradient_checkpointing="full", gpu_count=2, parallel={"engine": engine},
    )  # fmt: skip
    assert any(block.item == "weight_casts" for block in blocks(found)) == cached


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_stage_of_zero_without_an_engine_is_deepspeeds(stage: int, method: str) -> None:
    """It is never passed over: the figures are those of the engine named, and the assumption says so."""
    run = {"model": "qwen2.5-0.5b", "method": method, "gpu": "RTX 4090", "gpu_count": 4}
    said = estimate(Run.model_validate({**run, "parallel": {"zero": stage}}))
    named = estimate(Run.model_validate({**run, "parallel": {"zero": stage, "engine": "deepspeed"}}))
    assert said.run is not None and said.run.parallel is not None and said.run.parallel.engine == "deepspeed"
    assert said.per_gpu == named.per_gpu
    assert "parallel.engine" in {one.field for one in said.assumptions}


def test_cards_that_are_listed_are_counted() -> None:
    found = estimate(Run.model_validate({"model": "qwen2.5-0.5b", "method": "lora", "gpu": ["RTX 4090", "RTX 3090"]}))
    assert found.run is not None and found.run.gpu_count == 2
    assert "gpu_count" not in {one.field for one in found.assumptions}
