"""What holds for every layout: more cards never need more, the breakdown adds up, shares are the libraries' own."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.estimate import estimate
from estimator.schema import Estimate, Run

MODEL = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 4000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}
MIXED = {"fsdp1": "fsdp-mixed-bf16", "fsdp2": "fsdp-mixed-bf16", "deepspeed": "deepspeed-bf16"}
LAYOUTS: list[dict[str, Any]] = [
    {"engine": "fsdp1"},
    {"engine": "fsdp2", "wrap": "layers"},
    {"engine": "fsdp2", "wrap": "titan"},
    {"engine": "fsdp2", "wrap": "root"},
    {"engine": "fsdp2", "wrap": "layers", "reshard_after_forward": False},
    {"engine": "deepspeed", "zero": 1},
    {"engine": "deepspeed", "zero": 2},
    {"engine": "deepspeed", "zero": 3},
]


def answer(**fields: Any) -> Estimate:
    given = {"model": MODEL, "framework": "transformers", "method": "full", "loss": "standard", "task": "train"}
    return estimate(Run.model_validate(given | {"precision": "bf16", "optimizer": "adamw", "seq_len": 256} | fields))


def needed(**fields: Any) -> int:
    found = answer(**fields).per_gpu
    assert found is not None
    assert sum(block.bytes for block in found.at_peak) == found.allocated_peak
    return found.allocated_peak


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join(str(part) for part in layout.values()))
@settings(max_examples=6, deadline=None)
@given(cards=st.integers(1, 12), batch=st.integers(1, 3), checkpointing=st.sampled_from(["none", "full"]))
def test_more_shards_never_need_more(layout: dict[str, Any], cards: int, batch: int, checkpointing: str) -> None:
    same = {"micro_batch": batch, "gradient_checkpointing": checkpointing, "precision": MIXED[layout["engine"]]}
    few = needed(parallel=layout | {"data": cards}, gpu_count=cards, **same)
    many = needed(parallel=layout | {"data": 2 * cards}, gpu_count=2 * cards, **same)
    assert many <= few + 200 * 512  # rounding of some hundred blocks


@pytest.mark.parametrize("sequence", [False, True])
def test_tensor_parallel_shares_layers(sequence: bool) -> None:
    whole = needed(parallel={"engine": "none"}, micro_batch=2)
    peaks = [
        needed(parallel={"engine": "none", "tensor": cards, "sequence": sequence}, gpu_count=cards, micro_batch=2)
        for cards in (2, 4, 8)
    ]
    assert whole > peaks[0] > peaks[1] > peaks[2]


def test_context_parallel_shares_each_sequence() -> None:
    layout = {"engine": "fsdp2", "wrap": "layers", "data": 1}
    same = {"precision": "fsdp-mixed-bf16", "micro_batch": 1, "seq_len": 8192}
    two = needed(parallel=layout | {"context": 2}, gpu_count=2, **same)
    four = needed(parallel=layout | {"context": 4}, gpu_count=4, **same)
    assert 0.45 < four / two < 0.6


def test_a_pipeline_of_more_stages_needs_less() -> None:
    peaks = [
        needed(parallel={"engine": "none", "pipeline": stages}, gpu_count=stages, grad_accum=12) for stages in (2, 3, 6)
    ]
    assert peaks[0] > peaks[1] > peaks[2]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_masters_and_states_are_twelve_bytes_a_parameter(stage: int) -> None:
    """DeepSpeed's own estimators count 12 bytes per parameter, dealt out (runtime/zero/stage_1_and_2.py, stage3.py)."""
    found = answer(
        parallel={"engine": "deepspeed", "zero": stage, "data": 4}, gpu_count=4, precision="deepspeed-bf16"
    ).per_gpu
    assert found is not None
    parameters = 2 * 4000 * 256 + 256 + 6 * (4 * 256 * 256 + 3 * 256 * 704 + 2 * 256)
    held = sum(block.bytes for block in found.at_peak if block.item in ("master_weights", "optimizer_states"))
    assert held == pytest.approx(12 * parameters / 4, abs=4 * 512)


def test_offloaded_states_wait_on_the_host() -> None:
    layout = {"engine": "deepspeed", "zero": 3, "data": 4}
    kept = answer(parallel=layout, gpu_count=4, precision="deepspeed-bf16")
    moved = answer(parallel=layout, gpu_count=4, precision="deepspeed-bf16", offload={"optimizer": "cpu"})
    disk = answer(parallel=layout, gpu_count=4, precision="deepspeed-bf16", offload={"optimizer": "nvme"})
    assert kept.per_gpu is not None
    assert moved.per_gpu is not None
    assert moved.per_gpu.allocated_peak < kept.per_gpu.allocated_peak
    assert kept.host.ram == 0
    assert moved.host.ram > 0
    assert disk.host.nvme > disk.host.ram // 4 > 0


def test_whole_gradients_of_micro_steps_are_told() -> None:
    found = answer(parallel={"engine": "fsdp2", "data": 4}, gpu_count=4, grad_accum=4, precision="fsdp-mixed-bf16")
    assert any(note.field == "grad_accum" and "sync_each_batch" in note.why for note in found.notes)


def test_the_smallest_of_mixed_cards_and_the_slowest_link_are_named() -> None:
    found = answer(
        parallel={"engine": "fsdp2", "data": 16},
        nodes=2,
        gpu=["RTX 4090", "RTX 3060"],
        precision="fsdp-mixed-bf16",
    )
    assert any(note.field == "gpu" and "3060" in note.why and "PCIe 4.0 x16" in note.why for note in found.notes)
    assert any(note.field == "nodes" and "slowest" in note.why for note in found.notes)


def test_deepspeed_casts_adapters_too() -> None:
    layout = {"engine": "deepspeed", "zero": 2, "data": 2}
    found = answer(parallel=layout, gpu_count=2, method="lora", adapter={"rank": 8}).per_gpu
    assert found is not None
    adapter = next(block for block in found.at_peak if block.item == "adapter")
    assert "x 2 B" in adapter.why


@pytest.mark.parametrize(
    ("framework", "engine"), [("torchtitan", "fsdp2"), ("fsdp_qlora", "fsdp1"), ("megatron", "megatron"), (None, "ddp")]
)
def test_several_cards_without_a_layout(framework: str | None, engine: str) -> None:
    found = answer(framework=framework, gpu_count=4)
    assert found.run is not None
    assert found.run.parallel is not None
    assert found.run.parallel.engine == engine


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("method", ["freeze", "badam"])
def test_layers_that_do_not_train_have_no_gradients_to_share(method: str, zero: int) -> None:
    sharded = {"engine": "deepspeed", "zero": zero, "data": 2}
    run = {"model": "gemma-2-2b", "precision": "deepspeed-bf16", "gpu_count": 2, "parallel": sharded}
    some, every = (estimate(Run.model_validate(run | {"method": one})).per_gpu for one in (method, "full"))
    assert some is not None and every is not None
    assert some.allocated_peak < every.allocated_peak


def test_tensor_parallel_without_nvlink_names_the_bus() -> None:
    layout: dict[str, Any] = {"parallel": {"tensor": 2}, "gpu_count": 2}
    bare, bridged = (answer(gpu=name, **layout).notes for name in ("RTX 4090", "RTX 3090"))
    assert any("PCIe 4.0 x16 (32 GB/s each way)" in note.why and "NVLink" in note.why_zh for note in bare)
    assert not any("PCIe" in note.why for note in bridged)
