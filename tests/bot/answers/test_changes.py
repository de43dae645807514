"""What to change first, told of real estimates."""

import pytest

from bot.service import ask

LONGEST = 1_800
"""Characters of a chat answer: with room to spare below Discord's 2,000."""
QUESTIONS = (
    "qwen2.5-7b full 24GB bs 8",
    "llama-3.1-8b full transformers rtx 4090 bs 4 seq 4096, how to reduce?",
    "一张3090能全参微调llama3 8b吗，先改什么",
    "llama-3.1-70b inference 4090",
    "qwen3-30b-a3b lora 24G 怎么才能放下",
    "8 张 A100-80G 全参微调 llama-3.1-70b",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_run_that_does_not_fit_gets_steps_and_a_plan(question: str) -> None:
    found = ask(question)
    assert found.estimates[0].downgrades
    plan = found.estimates[0].plan
    assert plan is not None
    title = plan.chain[0].title_zh if found.lang == "zh" else plan.chain[0].title
    assert "".join(title.split()) in "".join(found.text.split())
    assert len(found.text) <= LONGEST


@pytest.mark.parametrize(("question", "told"), [("what should I change first?", True), ("", False)])
def test_flags_are_told_to_who_asks_how(question: str, told: bool) -> None:
    text = ask(f"qwen2.5-7b full 24GB {question}").text
    assert ("To type for it (trl):" in text) is told
    assert ("--use_peft" in text) is told


def test_chinese_has_no_english_words_of_ours() -> None:
    text = ask("qwen2.5-7b 全参 24G bs8").text
    assert "建议先改" in text
    assert not [word for word in ("fits", "saves", "slower", "such", "instead") if word in text]


def test_what_fits_is_not_told_to_change() -> None:
    assert "change first" not in ask("qwen2.5-0.5b lora 24GB").text
