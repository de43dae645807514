"""Moves to other hardware, and what they ask of the computer's own memory."""

from typing import Any

import pytest

from estimator.catalogue import find_gpu
from estimator.downgrades import applied
from estimator.downgrades.hardware import most_cards
from estimator.estimate import estimate
from estimator.schema import Estimate, Plan, Run, Step

HARDWARE = ("cards-", "card-")


def lowered(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(fields))


def told(found: Estimate) -> list[Step]:
    return [*found.downgrades, *(found.plan.chain if found.plan else [])]


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "llama-3.1-70b", "method": "full", "gpu": "RTX 2060", "framework": "trl"},
        {"model": "qwen2.5-7b", "method": "full", "gpu": "RTX 2060", "stage": "pretrain"},
        {"model": "deepseek-v3", "method": "full", "gpu": "RTX 3090"},
        {"model": "llama-3.1-70b", "method": "qlora", "gpu": "8GB", "seq_len": 8192},
    ],
)
def test_a_plan_has_one_move_to_other_hardware(fields: dict[str, Any]) -> None:
    found = lowered(**fields)
    ids = found.plan.steps if found.plan else []
    assert len([one for one in ids if one.startswith(HARDWARE)]) <= 1
    same = [step for step in told(found) if "gpu" not in step.change]
    assert all((applied(Run(model="7b"), step.change).gpu_count or 1) <= 8 for step in same)


@pytest.mark.parametrize(
    ("gpu", "most"),
    [("RTX 3090", 8), ("A100 80GB", 512), ("Apple M3 Max 36GB", 1), ("RTX 4090 Laptop", 1), ("24GB", 8), ("80GB", 512)],
)
def test_how_many_cards_of_a_kind(gpu: str, most: int) -> None:
    assert most_cards(find_gpu(gpu)) == most


@pytest.mark.parametrize("gpu", ["Apple M3 Max 36GB", "RTX 4090 Laptop"])
def test_no_second_card_where_there_is_none(gpu: str) -> None:
    found = lowered(model="qwen2.5-32b", task="infer", gpu=gpu)
    assert not [step for step in told(found) if step.id.startswith("cards-")]


def test_apple_gets_gguf_and_no_bitsandbytes() -> None:
    found = lowered(model="qwen2.5-32b", task="infer", gpu="Apple M3 Max 36GB")
    ids = [step.id for step in told(found)]
    assert found.fit.verdict != "fits"
    assert not {"int8", "4bit"} & set(ids)
    step = next(step for step in told(found) if step.id.startswith("gguf-"))
    assert step.change["engine"] == "llama.cpp"
    assert step.verdict == "fits"
    assert step.commands


def test_another_vendor_has_a_variable_of_its_own() -> None:
    found = lowered(model="qwen2.5-32b", task="infer", gpu="RX 7900 XTX")
    step = next(step for step in found.downgrades if step.id.startswith("cards-"))
    assert step.commands[0].startswith("HIP_VISIBLE_DEVICES=0,1")


@pytest.mark.parametrize("gpu", ["A100 40GB", "H100"])
def test_the_count_is_the_least(gpu: str) -> None:
    found = lowered(model="qwen2.5-7b" if gpu == "A100 40GB" else "llama-3.1-70b", method="full", gpu=gpu)
    step = next(step for step in found.downgrades if step.id.startswith("cards-"))
    fewer = step.change["gpu_count"] - 1
    run = applied(Run.model_validate({"model": found.run.model, "method": "full", "gpu": gpu}), step.change)  # type: ignore[union-attr]
    assert run.parallel is not None
    less = run.model_copy(update={"gpu_count": fewer, "parallel": run.parallel.model_copy(update={"data": fewer})})
    assert estimate(less).fit.verdict != "fits"


def test_fsdp_keeps_parameters_on_the_host() -> None:
    sharded = {"gpu_count": 2, "parallel": {"engine": "fsdp2", "data": 2, "zero": 3}}
    found = lowered(model="llama-3.1-70b", method="qlora", gpu="RTX 3090", framework="trl", **sharded)
    step = next(step for step in found.downgrades if step.id == "offload-parameters")
    assert step.verdict == "fits"
    assert any("fsdp_offload_params: true" in line for line in step.commands)
    assert found.plan is not None
    assert not [one for one in found.plan.steps if one.startswith(HARDWARE)]


def test_two_cards_offload_as_one_does() -> None:
    run = {"model": "llama-3.1-8b", "method": "full", "gpu": "RTX 3090", "framework": "trl"}
    one = {step.id for step in lowered(**run).downgrades if step.id.startswith("offload-")}
    two = {step.id for step in lowered(**run, gpu_count=2).downgrades if step.id.startswith("offload-")}
    assert one <= two


def test_host_memory_is_told_and_bounded() -> None:
    small = lowered(model="llama-3.1-8b", method="full", gpu="24GB", framework="trl")
    step = next(step for step in small.downgrades if step.id == "offload-parameters")
    assert "GiB" in step.note
    assert "GiB 主机内存" in step.note_zh
    huge = lowered(model="deepseek-v3", method="full", gpu="H200")
    assert "offload-parameters" not in [one.id for one in told(huge)]


@pytest.mark.parametrize("engine", ["exllama", "tgi", "vllm", "sglang", "llama.cpp", "ollama"])
def test_every_move_but_another_card_is_typed(engine: str) -> None:
    fields: dict[str, Any] = {"concurrency": 16} if engine != "ollama" else {"micro_batch": 16}
    found = lowered(model="qwen2.5-32b", task="serve", engine=engine, gpu="RTX 3090", context_len=32768, **fields)
    assert found.downgrades
    assert [one.id for one in told(found) if not one.commands and not one.id.startswith("card-")] == []


@pytest.mark.parametrize("engine", ["tgi", "vllm", "sglang"])
def test_what_a_step_saves_is_saved_of_what_all_requests_need(engine: str) -> None:
    found = lowered(model="qwen2.5-32b", task="serve", engine=engine, gpu="RTX 3090", context_len=32768, concurrency=8)
    assert found.serving is not None
    assert found.serving.needed_bytes is not None
    for step in found.downgrades:
        assert step.saves == found.serving.needed_bytes - step.allocated_peak >= 0


@pytest.mark.parametrize(("size", "title"), [("80", "an 80 GB card"), ("180", "a 180 GB card")])
def test_the_article_of_a_size(size: str, title: str) -> None:
    from estimator.downgrades.facts import facts
    from estimator.downgrades.steps import article

    assert facts("card")["title"].format(article=article(size), size=size).startswith(title)


def test_megatron_gets_megatrons_own_ways() -> None:
    found = lowered(model="qwen2.5-7b", method="full", framework="megatron", gpu="A100 40GB", gpu_count=4)
    ids = {step.id.partition("-")[0] for step in told(found)}
    assert ids <= {"tensor", "checkpointing", "length", "cards", "card", "micro"}
    step = next(step for step in found.downgrades if step.id == "tensor-4")
    assert step.change["parallel"]["tensor"] == 4
    assert "effective batch stays 4" in step.note
    assert "--tensor-model-parallel-size 4" in step.commands
    assert found.plan is not None
    assert found.plan.chain[-1].money_cost == "none", "the cards that are there suffice"


def test_activations_wait_behind_checkpoints_where_the_framework_says_so() -> None:
    run = {"method": "lora", "gpu": "12GB", "micro_batch": 8, "seq_len": 4096, "gradient_checkpointing": "none"}
    found = lowered(model="llama-3.2-1b", framework="axolotl", **run)
    step = next(step for step in found.downgrades if step.id == "offload-activations")
    assert step.change["gradient_checkpointing"] == "full"
    assert step.commands[-1] == "activation_offloading: true"


@pytest.mark.parametrize(
    ("fields", "step", "fewer"),
    [
        ({"model": "deepseek-v3", "task": "serve", "engine": "vllm", "gpu": "RTX 3090"}, "cards-8x80gb", 4),
        ({"model": "deepseek-v3", "task": "infer", "gpu": "RTX 3090"}, "cards-7x80gb", 6),
    ],
)
def test_what_no_single_card_holds_is_spread_over_the_fewest_of_a_server(
    fields: dict[str, Any], step: str, fewer: int
) -> None:
    plan = estimate(Run.model_validate(fields)).plan
    assert plan is not None and plan.run is not None
    assert plan.chain[-1].id == step
    assert plan.chain[-1].money_cost != "none"
    assert estimate(plan.run, steps=False).fit.verdict == "fits"
    parallel = plan.run.parallel
    assert parallel is not None
    spread = parallel.model_copy(update={"tensor": fewer}) if parallel.tensor > 1 else parallel
    less = plan.run.model_copy(update={"gpu_count": fewer, "parallel": spread})
    assert estimate(less, steps=False).fit.verdict != "fits"


def planned(**fields: Any) -> Plan:
    """The plan of a run that does not fit, which when estimated anew does."""
    plan = estimate(Run.model_validate(fields)).plan
    assert plan is not None and plan.run is not None
    assert estimate(plan.run, steps=False).fit.verdict == "fits"
    return plan


@pytest.mark.parametrize(
    ("fields", "gpu"),
    [
        ({"model": "llama-3.1-70b", "method": "lora", "gpu": "Apple M3 Max 36GB"}, "Apple M2 Ultra 192GB"),
        ({"model": "deepseek-v3", "task": "infer", "engine": "ollama", "weight_format": "Q4_K_M", "gpu": "M3 Max 36GB"},
         "Apple M3 Ultra 512GB"),
        ({"model": "qwen2.5-14b", "method": "lora", "gpu": "RTX 4090 Laptop", "packing": True}, None),
    ],
)  # fmt: skip
def test_who_can_use_one_makers_cards_alone_is_told_of_those(fields: dict[str, Any], gpu: str | None) -> None:
    plan = planned(**fields)
    assert plan.run is not None
    assert plan.run.gpu == (gpu or fields["gpu"])
    if gpu:
        assert gpu in plan.chain[-1].title
        assert gpu in plan.chain[-1].title_zh


def test_nothing_goes_to_the_cpu_where_both_share_one_memory() -> None:
    found = lowered(model="llama-3.1-70b", task="infer", engine="llama.cpp", weight_format="Q8_0", gpu="M3 Max 36GB")
    assert not [step for step in told(found) if "-on-cpu" in step.id]


def test_several_cards_are_changed_for_as_many() -> None:
    found = lowered(model="qwen2.5-14b", method="lora", gpu="12GB", gpu_count=2, parallel={"engine": "ddp", "data": 2})
    step = next(step for step in told(found) if step.id.startswith("card-"))
    assert step.title.startswith("2 cards of ")
    assert step.title_zh.startswith("换成 2 张")


def test_a_plan_asks_for_no_more_memory_than_such_computers_have() -> None:
    """Streaming 70 B parameters with their states needs more than a terabyte: it is told, but not planned on a 3090."""
    run = {"model": "llama-3.1-70b", "method": "full", "gpu": "RTX 3090", "framework": "trl"}
    step = next(step for step in lowered(**run).downgrades if step.id == "offload-parameters")
    assert step.verdict == "fits"
    assert step.host_ram > 1 << 40
    plan = planned(task="train", **run)
    assert plan.host_ram < 512 << 30
    assert plan.steps[-1].startswith("cards-")
    assert planned(task="train", host_ram_gib=2048, **run).steps == ["offload-parameters"]


def test_experts_are_dealt_out_before_layers_are_shared() -> None:
    plan = planned(
        model="mixtral-8x7b", task="train", method="full", framework="megatron", gpu="A100 80GB", gpu_count=8
    )
    assert plan.run is not None and plan.run.parallel is not None
    assert plan.run.parallel.expert == 8
    assert plan.run.gpu_count == 16
    assert "--expert-model-parallel-size 8" in plan.commands
    assert "torchrun --nnodes 2 --nproc_per_node 8" in plan.commands
    assert "expert parallel" in plan.chain[-1].title


def test_layers_of_many_experts_are_spread_by_zero_where_fsdp_gathers_too_much() -> None:
    plan = planned(model="deepseek-v3", task="train", method="full", gpu="RTX 3090")
    assert plan.run is not None and plan.run.parallel is not None
    assert (plan.run.parallel.engine, plan.run.parallel.zero) == ("deepspeed", 3)
    assert plan.chain[-1].title.endswith("ZeRO-3")
    assert plan.chain[-1].verdict == "fits"


def test_layers_of_many_experts_are_spread_over_no_more_cards_than_experts() -> None:
    plan = planned(model="deepseek-v3", task="train", method="lora", framework="trl", gpu="MI300X")
    assert plan.run is not None and plan.run.parallel is not None
    assert plan.run.parallel.engine == "fsdp2"
    assert 8 < (plan.run.gpu_count or 1) <= 32
    assert plan.chain[-1].verdict == "fits"
