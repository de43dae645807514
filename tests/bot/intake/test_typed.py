"""Options typed into boxes of their own mean what the same words mean in a message."""

import json
from typing import Any

import pytest

from bot import service
from bot.intake.lexicon import lexicon
from bot.intake.typed import LAYOUTS, typed_question
from bot.intake.understand import understand
from estimator.schema import Run


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "0.5b", "method": "lora", "gpu": "8GB"}, "/vram model:0.5b method:lora gpu:8GB"),
        ({"model": "7b", "gpu": "24GB"}, "/vram model:7b gpu:24GB"),
        (
            {"model": "qwen2.5-7b", "method": "qlora", "gpu": "2x4090", "batch": 2, "length": 4096},
            "/vram model:qwen2.5-7b method:qlora gpu:2x4090 batch:2 seq:4096",
        ),
        ({"model": "7b", "method": "infer", "length": 8192}, "/vram model:7b task:inference ctx:8192"),
        ({"model": "7b", "method": "lora", "quantisation": "nf4"}, "/vram model:7b method:lora quant:4bit"),
        ({"model": "32b", "method": "serve", "framework": "vllm", "gpu": "A100 80G", "gpus": 2},
         "/vram model:32b task:serving engine:vllm gpu:2xA100 80G"),
    ],
)  # fmt: skip
def test_options_mean_what_the_words_mean(given: dict[str, Any], message: str) -> None:
    typed, said = typed_question(given), understand(message)
    assert (typed.runs, typed.question, typed.reply) == (said.runs, said.question, said.reply)


def test_gpus_beside_a_count_in_the_name() -> None:
    assert typed_question({"model": "7b", "method": "lora", "gpu": "2x4090"}).runs[0]["gpu_count"] == 2
    assert typed_question({"model": "7b", "method": "lora", "gpu": "2x4090", "gpus": 4}).runs[0]["gpu_count"] == 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_offered_layout_is_read(layout: str) -> None:
    question = typed_question({"model": "7b", "method": "full", "gpu": "80GB", "gpus": 8, "parallelism": layout})
    assert question.reply == "answer" and question.runs[0]["parallel"]


def test_what_cannot_be_read_is_asked_back() -> None:
    question = typed_question({"model": "7b", "parallelism": "by magic"})
    answer = service.answered(question, "en")
    assert answer.reply == "clarify" and "by magic" in answer.text and "zero3" in answer.text


def test_a_pasted_config_is_a_model() -> None:
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    answer = service.answered(typed_question({"model": json.dumps(config), "method": "lora", "gpu": "8GB"}), "zh")
    assert answer.reply == "answer" and answer.estimates[0].per_gpu


@pytest.mark.parametrize("broken", ['{"model_type": ', "{}", "[1]", "   ", "no-such-model-at-all"])
def test_a_model_that_is_none_gets_a_sentence(broken: str) -> None:
    answer = service.answered(typed_question({"model": broken, "method": "lora", "gpu": "8GB"}), "en")
    assert answer.reply == "clarify" and answer.text


def test_every_choice_of_the_lexicon_is_a_value_of_a_run() -> None:
    for option, section in (("quantisation", "weight_format"), ("optimizer", "optimizer")):
        for value in lexicon().choices(section):
            (run,) = typed_question({"model": "7b", "method": "lora", option: value}).runs
            assert Run.model_validate(service.run_of(run))
