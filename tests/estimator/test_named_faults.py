"""What frameworks do to quantised models, hosts that are too small, and verdicts that agree with the card's range."""

from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import Estimate, Run


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(fields))


@pytest.mark.parametrize(("framework", "upcast"), [("llama-factory", False), ("ms-swift", False), ("axolotl", True)])
def test_only_axolotl_turns_embeddings_to_fp32(framework: str, upcast: bool) -> None:
    fields = {"model": "qwen2.5-7b", "task": "train", "method": "qlora", "weight_format": "nf4"}
    found = answer(**fields, framework=framework)
    assert found.run.kbit_prepare is upcast
    assert found.per_gpu is not None
    weights = next(block for block in found.per_gpu.at_peak if block.item == "weights")
    held = next(part for part in weights.parts or [] if part.why.endswith(" B") and "embeddings" in part.why)
    assert held.why.endswith("4 B" if upcast else "2 B")


OFFLOADED: dict[str, Any] = {
    "model": "qwen2.5-7b",
    "task": "train",
    "method": "full",
    "gpu": "RTX 4090",
    "offload": {"optimizer": "cpu", "parameters": "cpu"},
}


@pytest.mark.parametrize(("ram", "told"), [(96, True), (256, False), (None, False)])
def test_a_host_that_is_too_small_is_told(ram: float | None, told: bool) -> None:
    found = answer(**OFFLOADED, host_ram_gib=ram)
    assert found.host is not None
    said = [note for note in found.notes if note.field == "host_ram_gib"]
    assert bool(said) is told
    assert all(f"{found.host.ram / (1 << 30):.1f} GiB" in note.why and "96 GiB" in note.why_zh for note in said)


def test_a_fused_gate_is_two_linears_in_litgpt() -> None:
    run = {"task": "train", "method": "lora", "framework": "litgpt", "seq_len": 512}
    fused, apart = (
        estimate(Run.model_validate({**run, "model": model})).per_gpu
        for model in ("microsoft/Phi-3-mini-4k-instruct", "mistral-7b-v0.1")
    )
    assert fused is not None and apart is not None
    parts = {block.item: block.bytes for block in fused.at_peak}
    assert parts["adapter"] > 0 and fused.allocated_peak < apart.allocated_peak
