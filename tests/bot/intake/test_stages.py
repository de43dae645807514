"""Messages about stages and images, and the sections of a run that they reach."""

from typing import Any

import pytest

from bot.intake.understand import understand
from bot.service import ask


def run(text: str) -> dict[str, Any]:
    return understand(text).runs[0]


def test_an_online_stage_trains_and_its_engine_generates() -> None:
    found = run("grpo 7b lora 16 completions per prompt max completion length 2048 with vllm sleep mode")
    assert found["task"] == "train"
    assert "engine" not in found
    assert found["rl"] == {"num_generations": 16, "max_completion_len": 2048, "engine": "vllm", "sleep": True}


def test_generations_are_no_generation() -> None:
    found = run("GRPO qwen2.5 7b 8 generations 4090x2")
    assert found["task"] == "train"
    assert found["rl"] == {"num_generations": 8}
    assert (found["gpu"], found["gpu_count"]) == ("4090", 2)


def test_serving_with_vllm_is_serving_still() -> None:
    found = run("qwen2.5 7b with vllm on a 4090")
    assert found["engine"] == "vllm"
    assert "rl" not in found


def test_beta_and_precomputed_log_probabilities() -> None:
    assert run("7b grpo beta 0.04 full")["details"] == {"beta": 0.04}
    assert run("7b dpo full precompute_ref_log_probs")["preference"] == {"precomputed_logps": True}


def test_images_of_a_model_that_sees() -> None:
    found = run("qwen2.5-vl-7b lora 2 images 1024x1024 on 4090")
    assert found["vision"] == {"images": 2, "width": 1024, "height": 1024}
    assert "vision" not in run("qwen2.5-7b lora seq 1024 on 4090")


@pytest.mark.parametrize(
    ("text", "lang", "named"),
    [
        ("/vram model:7b method:lora stage:dpo", "en", "DPO LoRA"),
        ("dpo 7b lora on 24GB?", "en", "DPO LoRA"),
        ("reward model 1.5b full on 4090", "en", "reward model"),
        ("奖励模型 qwen2.5 1.5b 全参 能放进4090吗", "zh", "奖励模型"),
        ("simpo llama3 8b qlora 24g", "en", "SimPO"),
        ("7b grpo 全参 A100 80G", "zh", "GRPO"),
    ],
)
def test_the_answer_names_the_stage(text: str, lang: str, named: str) -> None:
    told = ask(text, lang=lang)
    assert told.reply == "answer"
    assert named in told.text
