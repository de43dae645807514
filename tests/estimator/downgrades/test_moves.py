"""Which moves are offered to whom."""

from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import Estimate, Run, Step

FULL: dict[str, Any] = {"model": "llama-3.1-8b", "method": "full", "gpu": "RTX 3090", "framework": "transformers"}


def lowered(**changes: Any) -> Estimate:
    return estimate(Run.model_validate(FULL | changes))


def steps(**changes: Any) -> dict[str, Step]:
    """Steps by the move's name, figures left out."""
    return {one.id: one for one in lowered(**changes).downgrades}


def named(found: dict[str, Step], start: str) -> Step:
    return next(step for name, step in found.items() if name.startswith(start))


SMALL = {"model": "qwen2.5-0.5b", "precision": "amp-bf16", "gpu": "8GB", "micro_batch": 4, "seq_len": 2048}


def test_the_order_of_the_guide() -> None:
    ids = list(steps(**SMALL))
    order = ("micro-batch", "lora", "checkpointing", "card-")
    places = [next(place for place, one in enumerate(ids) if one.startswith(name)) for name in order]
    assert places == sorted(places)
    assert ids.index("fused-loss") < places[0]


def test_pretraining_keeps_its_weights_as_long_as_it_can() -> None:
    ids = list(steps(**SMALL, details={"downgrade_order": "lossless"}))
    assert ids.index("checkpointing") < ids.index("lora")
    found = lowered(model="qwen2.5-7b", gpu="24GB", stage="pretrain")
    assert not {"lora", "qlora"} & {one.id for one in found.downgrades}, "there is no base to adapt"
    assert found.plan is not None
    assert found.plan.steps == ["offload-parameters"]


def test_a_smaller_micro_batch_keeps_the_effective_batch() -> None:
    step = named(steps(micro_batch=6, grad_accum=2, seq_len=4096), "micro-batch")
    assert step.change["micro_batch"] * step.change["grad_accum"] == 12
    assert "stays 12" in step.note


@pytest.mark.parametrize(
    ("changes", "move"),
    [
        ({"precision": "amp-fp16", "gpu": "V100 16GB"}, "bf16"),
        ({"gpu": "T4", "precision": "fp16", "attention": "sdpa", "packing": True}, "flash2"),
        ({"model": "bloom-560m", "gpu": "6GB", "micro_batch": 8, "seq_len": 2048}, "fused-loss"),
        ({"framework": "minimind"}, "lora"),
        ({"framework": "transformers", "micro_batch": 8}, "offload-activations"),
        ({"optimizer": "adamw-8bit"}, "adamw-8bit"),
        ({"gradient_checkpointing": "full"}, "checkpointing"),
        ({"grad_accum": 4}, "lomo"),
        ({"gpu": "Apple M3 Max 36GB", "model": "llama-3.1-70b"}, "qlora"),
    ],
)
def test_what_is_not_there_is_not_offered(changes: dict[str, Any], move: str) -> None:
    found = lowered(**changes)
    assert found.fit.verdict != "fits"
    chained = found.plan.steps if found.plan else []
    assert not [one for one in [*steps(**changes), *chained] if one == move or one.startswith(f"{move}-r")]


@pytest.mark.parametrize(("gpu", "offered"), [("A100 80GB", False), ("H100", True)])
def test_fp8_only_where_the_card_computes_in_it(gpu: str, offered: bool) -> None:
    serve = {"model": "llama-3.1-70b", "task": "serve", "engine": "vllm", "gpu": gpu, "framework": None, "method": None}
    found = steps(**serve, context_len=8192)
    assert ("fp8" in found) is offered
    assert ("kv-8bit" in found) <= offered


def test_frozen_weights_take_fp16_where_there_is_no_bf16() -> None:
    run = {"method": "lora", "precision": "fp32", "gpu": "V100 16GB"}
    assert named(steps(**run), "bf16").change["precision"] == "fp16"
    assert named(steps(**run), "bf16").quality_cost == "none"


def test_fused_loss_brings_the_kernels_of_its_switch() -> None:
    step = steps(micro_batch=8, seq_len=2048)["fused-loss"]
    assert step.change == {"loss": "fused", "fused_kernels": ["norm", "rope", "mlp"]}
    alone = steps(framework="axolotl", micro_batch=8, seq_len=2048)["fused-loss"]
    assert alone.change == {"loss": "fused"}


def test_several_copies_are_sharded_before_anything_is_bought() -> None:
    found = lowered(gpu="A100 80GB", gpu_count=4)
    assert found.plan is not None
    assert found.plan.steps == ["shard"]
    assert found.plan.chain[0].money_cost == "none"


def test_eight_bit_states_are_not_sharded() -> None:
    run = {"gpu_count": 2, "parallel": {"engine": "fsdp2", "data": 2, "zero": 3}}
    assert not [name for name in steps(**run) if "8bit" in name or name == "paged"]


def test_host_memory_bounds_what_is_offloaded() -> None:
    run = {"framework": "trl", "micro_batch": 16, "seq_len": 4096, "method": "lora", "gpu": "24GB"}
    assert "offload-activations" in steps(**run)
    assert "offload-activations" not in steps(**run, host_ram_gib=1)


def test_nothing_but_more_hardware_names_the_least_of_it() -> None:
    found = lowered(model="deepseek-v3", task="infer", method=None, framework=None, gpu="H100", weight_format="fp8")
    assert found.plan is not None
    assert found.plan.chain[-1].id.startswith("cards-")
    assert found.plan.chain[-1].money_cost == "medium"


def test_the_smallest_size_of_card_is_the_smallest() -> None:
    step = named(steps(model="qwen2.5-7b", method="lora", gpu="8GB", framework="trl"), "card-")
    assert (step.change, step.saves, step.verdict) == ({"gpu": "20GB"}, 0, "fits")
    smaller = estimate(Run(model="qwen2.5-7b", method="lora", framework="trl", gpu="16GB"))
    assert smaller.fit.verdict != "fits"


def test_states_wait_in_host_memory_where_there_is_enough() -> None:
    run = {"framework": "llama-factory", "gpu": "24GB"}
    step = steps(**run)["offload-optimizer"]
    assert (step.verdict, step.speed_cost, step.quality_cost) == ("fits", "large", "none")
    assert step.commands[-1].endswith("ds_z2_offload_config.json")
    assert "offload-optimizer" not in steps(**run, host_ram_gib=64)


def test_deepspeed_stays_deepspeed() -> None:
    run = {"parallel": {"engine": "deepspeed", "zero": 2, "data": 2}, "gpu_count": 2, "precision": "deepspeed-bf16"}
    step = steps(**run, gpu="A100 80GB")["shard"]
    assert step.change["parallel"]["zero"] == 3
    assert "ZeRO-3" in step.title


def test_a_move_that_a_cheaper_one_rules_out_is_still_found() -> None:
    found = lowered(model="llama-3.1-70b", method="lora", framework="ms-swift")
    assert found.plan is not None
    assert found.plan.steps == ["offload-parameters"]
