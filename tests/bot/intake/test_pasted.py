"""Configs and commands in a chat message."""

import pytest

from bot import service
from bot.intake.pasted import pasted
from bot.intake.understand import understand

AXOLOTL = (
    "base_model: mistralai/Mistral-7B-v0.1\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nlora_target_linear: true\n"
    "sequence_len: 4096\nmicro_batch_size: 2\ngradient_checkpointing: true\n"
)
VLLM = "vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ --tensor-parallel-size 2 --max-model-len 8192"
DEEPSPEED = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 2}'


def test_a_fenced_config_answers_the_question_around_it() -> None:
    answer = service.ask(f"does this fit on 2x3090?\n```yaml\n{AXOLOTL}```\nthanks")
    assert answer.reply == "answer"
    assert answer.question == "fit"
    assert answer.runs[0]["method"] == "qlora"
    assert answer.runs[0]["gpu"] == "3090"
    assert answer.runs[0]["gpu_count"] == 2
    assert answer.estimates[0].fit.verdict


def test_a_bare_command_is_estimated() -> None:
    answer = service.ask(VLLM)
    assert answer.runs[0]["engine"] == "vllm"
    assert answer.estimates[0].serving is not None


def test_a_card_named_before_is_kept() -> None:
    answer = service.ask(AXOLOTL, ["I have a 4090, what can I train?"])
    assert answer.runs[0]["gpu"] == "4090"


def test_a_follow_up_changes_the_pasted_run() -> None:
    answer = service.ask("and with seq 8k?", [f"fits on a 4090?\n{AXOLOTL}"])
    assert answer.runs[0]["seq_len"] == 8192
    assert answer.runs[0]["adapter"]["rank"] == 32


def test_a_file_without_a_model_asks_for_it_and_keeps_the_rest() -> None:
    question = understand(DEEPSPEED)
    assert question.reply == "clarify"
    assert "model" in question.missing
    assert question.spoken[0]["parallel"]["zero"] == 3


def test_unknown_keys_and_contradictions_are_told() -> None:
    answer = service.ask(AXOLOTL.replace("adapter: qlora\n", "") + "lora_rank: 8\n", lang="en")
    assert any("load_in_4bit" in line for line in answer.remarks)
    assert "lora_rank" in answer.text
    chinese = service.ask(AXOLOTL.replace("adapter: qlora\n", ""), lang="zh")
    assert "矛盾" in chinese.text


def test_a_file_that_would_run_code_is_declined() -> None:
    answer = service.ask(AXOLOTL + 'x: !!python/object/apply:os.system ["true"]\n', lang="en")
    assert answer.reply == "clarify"
    assert "nothing was run" in answer.text


@pytest.mark.parametrize(
    "text",
    [
        "can I lora 7b on a 4090 with --per_device_train_batch_size 4?",
        "qwen2.5 7b bs4 seq 4k",
        "python or rust?",
        "note: I use vllm - is 24GB enough for 13b?",
        "/vram model:7b method:lora gpu:24GB",
        "model: 7b\nbatch: 4",
        "单卡4090能跑qwen2.5-7b lora吗",
    ],
)
def test_plain_questions_are_no_paste(text: str) -> None:
    assert pasted(text) is None
