"""What a stage brings: rows, reference models, generation, and the defaults of trl."""

from typing import Any

import pytest

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run

SMALL = "qwen2.5-0.5b"
GIB = 1 << 30


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate({"model": SMALL, **fields}))


def item(found: Estimate, name: str) -> int:
    assert found.per_gpu is not None
    return sum(block.bytes for block in found.per_gpu.at_peak if block.item == name)


def allocated(found: Estimate) -> int:
    assert found.per_gpu is not None
    return found.per_gpu.allocated_peak


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
@pytest.mark.parametrize("stage", ["sft", "reward", "dpo", "orpo", "kto", "simpo", "grpo"])
def test_every_stage_by_every_method_adds_up(stage: str, method: str) -> None:
    found = answer(stage=stage, method=method, gpu="RTX 3090")
    assert found.per_gpu is not None
    assert sum(block.bytes for block in found.per_gpu.at_peak) == found.per_gpu.allocated_peak
    assert all(block.why and block.why_zh for block in found.per_gpu.at_peak)
    assert found.run is not None
    assert found.run.stage == stage


def test_full_training_by_preference_holds_a_frozen_copy() -> None:
    model = answer(stage="dpo", method="full", precision="bf16")
    ahead = answer(stage="dpo", method="full", precision="bf16", preference={"precomputed_logps": True})
    assert item(model, "reference_model") == item(model, "weights")
    assert item(ahead, "reference_model") == 0
    assert allocated(ahead) < allocated(model)


def test_an_adapter_is_its_own_reference() -> None:
    found = answer(stage="dpo", method="lora")
    assert item(found, "reference_model") == 0
    assert found.run is not None
    assert found.run.preference is not None
    assert found.run.preference.reference == "adapter-off"


def test_a_pair_is_two_rows() -> None:
    pair = answer(stage="dpo", method="lora", preference={"precomputed_logps": True}, micro_batch=2)
    rows = answer(stage="kto", method="lora", preference={"precomputed_logps": True}, micro_batch=4)
    assert allocated(pair) == pytest.approx(allocated(rows), rel=0.02)


def test_a_reward_model_has_no_logits() -> None:
    reward = answer(stage="reward", method="lora", micro_batch=4, loss="standard")
    sft = answer(stage="sft", method="lora", micro_batch=8, loss="standard")
    assert allocated(sft) - allocated(reward) > 8 * 1024 * 151_936 * 8


def test_group_size_scales_the_activations() -> None:
    eight = answer(stage="grpo", method="lora", rl={"num_generations": 8})
    sixteen = answer(stage="grpo", method="lora", rl={"num_generations": 16})
    assert 1.7 < item(sixteen, "recompute") / item(eight, "recompute") < 2.3


def test_beta_brings_the_reference_in() -> None:
    off = answer(stage="grpo", method="full")
    on = answer(stage="grpo", method="full", details={"beta": 0.04})
    assert item(off, "reference_model") == 0
    assert allocated(on) - allocated(off) == pytest.approx(item(on, "reference_model"), rel=0.01)


def test_the_policy_generates_between_steps() -> None:
    found = answer(stage="grpo", method="lora", rl={"num_generations": 64, "max_completion_len": 4096}, micro_batch=1)
    assert found.per_gpu is not None
    phases = {phase.phase: phase.allocated_peak for phase in found.per_gpu.phases}
    cache = 64 * (4096 + 512) * 24 * 2 * 128 * 2
    assert phases["decode"] > cache


def test_generation_can_be_the_peak_and_is_told() -> None:
    run = {
        "stage": "grpo",
        "method": "lora",
        "grad_accum": 64,
        "rl": {"num_generations": 8, "max_completion_len": 2048},
    }
    found = answer(**run)
    assert found.per_gpu is not None
    assert found.per_gpu.peak_phase == "decode"
    assert item(found, "kv_cache") > item(found, "weights")
    assert sum(block.bytes for block in found.per_gpu.at_peak) == found.per_gpu.allocated_peak


def test_vllm_takes_its_share_and_gives_it_back_asleep() -> None:
    plain = answer(stage="grpo", method="lora", gpu="RTX 4090", rl={"engine": "vllm", "colocated_share": 0.0})
    awake = answer(stage="grpo", method="lora", gpu="RTX 4090", rl={"engine": "vllm"})
    asleep = answer(stage="grpo", method="lora", gpu="RTX 4090", rl={"engine": "vllm", "sleep": True})
    assert awake.fit.usable is not None
    assert allocated(awake) - allocated(plain) == pytest.approx(0.3 * awake.fit.usable, rel=0.001)
    assert allocated(asleep) < allocated(awake)


def test_a_share_that_cannot_hold_the_model_is_said() -> None:
    found = estimate(Run(model="qwen2.5-7b", stage="grpo", method="lora", gpu="RTX 4090", engine="vllm"))
    assert any(note.field == "rl.colocated_share" and "not start" in note.why for note in found.notes)


def test_a_stage_means_training_even_with_an_engine() -> None:
    found = answer(stage="grpo", engine="vllm", method="lora")
    assert found.run is not None
    assert found.run.task == "train"
    assert found.run.rl is not None
    assert found.run.rl.engine == "vllm"


def test_completions_longer_than_the_row_make_it_longer() -> None:
    found = answer(stage="grpo", method="lora", rl={"max_completion_len": 4096})
    assert found.run is not None
    assert found.run.seq_len == 4096 + 512


def test_a_completion_that_fills_its_row_is_refused() -> None:
    with pytest.raises(EstimatorError) as caught:
        answer(stage="grpo", method="lora", seq_len=512, rl={"max_completion_len": 1024})
    assert caught.value.field == "seq_len"


def test_the_largest_batch_counts_pairs() -> None:
    found = answer(stage="dpo", method="lora", gpu="RTX 3090")
    assert found.max is not None
    most = answer(stage="dpo", method="lora", gpu="RTX 3090", micro_batch=found.max.micro_batch)
    more = answer(stage="dpo", method="lora", gpu="RTX 3090", micro_batch=found.max.micro_batch + 1)
    assert most.fit.verdict == "fits"
    assert more.fit.verdict != "fits"


def test_trl_switches_dropout_off_where_policies_are_compared() -> None:
    dropped = {"rank": 16, "dropout": 0.1}
    with_reference = answer(stage="dpo", method="lora", adapter=dropped)
    assert allocated(with_reference) == allocated(answer(stage="dpo", method="lora"))
    assert allocated(answer(stage="sft", method="lora", adapter=dropped)) > allocated(
        answer(stage="sft", method="lora")
    )


def test_ppo_holds_four_models() -> None:
    found = answer(stage="ppo", method="full", micro_batch=2)
    assert item(found, "reward_model") > 0.9 * item(found, "weights")
    assert item(found, "reference_model") == item(found, "weights")
    assert item(found, "value_model") > 2.5 * item(found, "reward_model")
    assert any(note.field == "stage" and "not traced" in note.why for note in found.notes)


def test_embedding_pairs_are_two_rows_without_logits() -> None:
    found = estimate(Run(model="bge-base-en-v1.5", stage="embed", micro_batch=16))
    assert found.run is not None
    assert found.run.seq_len == 512
    sft = estimate(Run(model="bge-base-en-v1.5", stage="sft", framework="transformers", micro_batch=32, seq_len=512))
    assert allocated(found) == pytest.approx(allocated(sft), rel=0.02)


def test_encoders_are_scored_and_embedded_but_do_not_generate() -> None:
    assert allocated(estimate(Run(model="bge-base-en-v1.5", stage="reward"))) > 0
    with pytest.raises(EstimatorError) as caught:
        estimate(Run(model="bge-base-en-v1.5", stage="dpo"))
    assert caught.value.field == "stage"


def test_a_reference_that_is_shared_out_is_said_to_be_near() -> None:
    shared = {"engine": "fsdp2", "data": 8}
    found = answer(stage="dpo", method="full", gpu_count=8, parallel=shared)
    assert any(note.field == "preference.reference" for note in found.notes)


def test_a_stage_with_one_loss_offers_no_other() -> None:
    found = estimate(Run(model=SMALL, stage="reward", method="lora"), others=True)
    assert [list(other.change) for other in found.alternatives] == [["gradient_checkpointing"]]
