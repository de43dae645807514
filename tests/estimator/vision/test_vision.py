"""Image towers: how many tokens an image becomes, what the tower holds, and what of it trains."""

from typing import Any

import pytest

from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from estimator.vision.images import seen
from estimator.vision.parts import tower_parts
from estimator.vision.tower import tower_of


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(fields))


def item(found: Estimate, name: str) -> int:
    assert found.per_gpu is not None
    return sum(block.bytes for block in found.per_gpu.at_peak if block.item == name)


@pytest.mark.parametrize(
    ("model", "size", "features"),
    [
        ("llava-1.5-7b", (1024, 768), 576),
        ("gemma-3-4b", (1024, 1024), 256),
        ("paligemma-3b", (640, 480), 256),
        ("qwen2.5-vl-7b", (1024, 1024), 37 * 37),
        ("qwen2.5-vl-7b", (28, 28), 4),
        ("qwen2.5-vl-7b", (8000, 8000), 128 * 128),
        ("qwen3-vl-8b", (1024, 1024), 32 * 32),
        ("InternVL3-8B-hf", (448, 448), 256),
        ("InternVL3-8B-hf", (1024, 1024), 10 * 256),
        ("mistral-small-3.1-24b", (1024, 1024), 37 * 37 + 37),
        ("llava-hf/llava-v1.6-mistral-7b-hf", (672, 672), 576 + 48 * 48 + 48),
    ],
)
def test_an_image_becomes_as_many_tokens_as_its_processor_makes(
    model: str, size: tuple[int, int], features: int
) -> None:
    arch = find_model(model).architecture
    tower = tower_of(arch)
    assert tower is not None
    assert seen(arch, tower, *size).features == features


@pytest.mark.parametrize("model", ["llava-1.5-7b", "qwen2-vl-2b", "qwen2.5-vl-7b", "gemma-3-4b", "qwen3-vl-8b"])
def test_described_towers_are_the_published_count(model: str) -> None:
    arch = find_model(model).architecture
    assert arch.vision is not None
    parts, projector = tower_parts(arch)
    assert parts.numel + sum(weight.numel for weight in projector) == arch.vision.params + arch.vision.projector_params
    assert all(weight.name != "unmodelled" for weight in parts.stem)


def test_a_tower_is_held_whether_or_not_it_sees_anything() -> None:
    blind = answer(model="qwen2.5-vl-7b", method="lora")
    seeing = answer(model="qwen2.5-vl-7b", method="lora", vision={"width": 448, "height": 448})
    assert item(blind, "vision_tower") == item(seeing, "vision_tower") > 676_550_144 * 2 - 1


def test_a_trained_tower_has_gradients_and_states() -> None:
    frozen = answer(model="llava-1.5-7b", method="full", vision={"tower": "frozen"})
    trained = answer(model="llava-1.5-7b", method="full", vision={"tower": "trained"})
    assert frozen.per_gpu is not None
    assert trained.per_gpu is not None
    used = 303_507_456 * 23 // 24
    assert trained.per_gpu.allocated_peak - frozen.per_gpu.allocated_peak == pytest.approx(used * 6, rel=0.1)


def test_a_row_that_was_assumed_grows_with_its_images() -> None:
    found = answer(model="qwen2.5-vl-7b", method="lora", vision={"images": 2})
    assert found.run is not None
    assert found.run.seq_len == 2 * 37 * 37 + 512


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "qwen2.5-vl-7b", "vision": {"images": 4}, "seq_len": 2048},
        {"model": "qwen2.5-7b", "vision": {"images": 1}},
    ],
)
def test_images_that_do_not_fit_the_row_or_the_model(fields: dict[str, Any]) -> None:
    with pytest.raises(EstimatorError) as caught:
        answer(**fields)
    assert caught.value.field == "vision"
    assert caught.value.message_zh


@pytest.mark.parametrize("stage", ["dpo", "kto", "grpo", "sft"])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_every_stage_sees(stage: str, method: str) -> None:
    found = answer(model="qwen2.5-vl-3b", stage=stage, method=method, vision={"width": 448, "height": 448})
    assert found.per_gpu is not None
    assert sum(block.bytes for block in found.per_gpu.at_peak) == found.per_gpu.allocated_peak
