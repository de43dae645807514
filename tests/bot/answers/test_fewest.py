"""How many cards: the count leads the answer."""

import pytest

from bot import service


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("qwen2.5-7b全参需要几张A100 40G", "至少需要 5 张 A100"),
        ("how many A100 40GB for full fine-tuning qwen2.5-7b", "At least 5 x A100"),
        ("how many 3090 for lora of qwen2.5-0.5b", "At least 1 x RTX 3090"),
        ("how many 3090 for full fine-tuning deepseek v3", "Even 8 x RTX 3090 would not"),
    ],
)
def test_the_count_leads(text: str, start: str) -> None:
    answer = service.ask(text)
    assert answer.question == "need_gpu"
    assert answer.text.splitlines()[1].startswith(start)


def test_each_reading_has_its_count() -> None:
    lines = service.ask("qwen3-235b-a22b 需要几张H20").text.splitlines()
    assert [("推理" in line, "LoRA" in line) for line in lines[1:3]] == [(True, False), (False, True)]
    assert all("至少需要" in line for line in lines[1:3])


def test_nothing_is_said_of_a_batch_that_is_one_already() -> None:
    text = service.ask("full fine-tuning llama 3.1 8b on a 3090 batch 1").text
    assert "batch of 1" not in text
    assert "Shorter rows alone do not make it fit." in text


def test_a_bare_size_is_told_in_the_language_of_the_answer() -> None:
    assert "1 张 80 GB 显卡" in service.ask("13B lora 要几张 80G").text
