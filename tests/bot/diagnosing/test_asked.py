"""Questions that entries answer, and questions why a run failed."""

import pytest

from bot import service


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("why does vllm take all my memory", "vllm_prealloc_by_design"),
        ("how come lora uses as much memory as full finetuning", "lora_activation_bound"),
        ("does batch size or seq len matter more for memory?", "batch_seq_activations"),
        ("why does my vram keep going up during training", "faq_surge_midrun"),
        ("why does mixtral need so much memory if only 2 experts are active", "moe_total_params"),
        ("what can i do to lower the vram of 7b lora on a 3090, seq 8k?", "claim_order"),
        ("为什么vllm把显存占满了", "vllm_prealloc_by_design"),
        ("batch 和序列长度哪个更占显存", "batch_seq_activations"),
    ],
)
def test_an_entry_answers(text: str, entry: str) -> None:
    assert service.ask(text).entries == [entry]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("why is the first step fine and the second one oom, 8b full bf16 a100 80", "optimizer_first_step"),
        ("7b dpo ooms on an a100 40g where sft was fine, why", "rl_extra_models"),
    ],
)
def test_why_a_run_failed_is_diagnosed(text: str, cause: str) -> None:
    answer = service.ask(text)
    assert answer.question == "explain"
    assert answer.diagnosis and answer.diagnosis.causes[0].id == cause


def test_talk_is_no_question() -> None:
    assert service.ask("my batch of cookies is out of the oven, second one next").reply == "ignore"
