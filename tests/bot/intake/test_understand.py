"""From whole messages to runs."""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.intake.understand import Question, understand

MIXED = [
    "7b",
    "lora",
    "qlora",
    "4090",
    "2x",
    "24GB",
    "bs",
    "4",
    "seq",
    "4k",
    "-1",
    "0",
    "?",
    "微调",
    "两张",
    "A100",
    "zero3",
    "model:",
    "gpu:",
    "qwen",
    "/",
    "x",
    "or",
    "和",
]
LLAMA = "can I fine-tune llama3 8b with lora on a 3090?"


def only(question: Question) -> dict[str, Any]:
    assert len(question.runs) == 1
    return question.runs[0]


def test_the_slash_command() -> None:
    run = only(understand("/vram model:0.5b method:lora gpu:8GB"))
    assert run == {
        "model": "0.5b", "method": "lora", "gpu": "8GB", "memory_gb": 8.0, "task": "train", "params_b": 0.5,
        "resolved_model": "Qwen/Qwen2.5-0.5B",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reply", "question"),
    [
        (LLAMA, "answer", "fit"),
        ("How much GPU mem for 7B?", "answer", "need_memory"),
        ("how many 80g a100 to fine-tune 70b", "answer", "need_gpu"),
        ("0.5B 全参 8G卡 bs 最大多少", "answer", "max_batch"),
        ("largest per device batch for bert-large on a v100 16gb", "answer", "max_batch"),
        ("7b full max batch 4 on 24g", "answer", "fit"),
        ("最大能开多少batch 7b qlora 24g", "answer", "max_batch"),
        ("租A100 40G的话一天多少", "answer", "price"),
        ("预算2万，想本地跑70b，买啥卡", "answer", "need_gpu"),
        ("budget of $200 for a full sft of a 3b on 20M tokens", "answer", "cost"),
        ("can 2xL40S qlora a 32b, or do I need 4", "answer", "fit"),
        ("could i squeeze a 32b qlora into 24gb", "answer", "fit"),
        ("7b lora batch size on an a100 40?", "answer", "max_batch"),
        ("7b lora at 24GB with a length of zero", "clarify", "fit"),
        ("recommended hardware for 32b lora", "answer", "need_gpu"),
        ("max_model_len for qwen2.5 32b awq on a 4090?", "answer", "max_seq"),
        ("how large can batch be for a 1b full on 24g", "answer", "max_batch"),
        ("largest llm for a 4090", "answer", "max_model"),
        ("how to train 13b with 2x 3090", "answer", "advice"),
        ("训练一个1b模型 20B token 花费", "answer", "cost"),
        ("GPU needed for qwen2.5-coder-32b fp16 inference?", "answer", "need_gpu"),
        ("24GB x 4, deepspeed stage 2, can't train 13B full. Any suggestion?", "answer", "advice"),
        ("does an l40s beat 2x 3090 for serving 32b awq?", "answer", "compare"),
        ("7b lora with or without gradient checkpointing on a 4090", "answer", "compare"),
        ("1.8b全参24g卡，adamw换成adafactor能省多少", "answer", "compare"),
        ("8张A800训一个13B模型，200B token，要几个月", "answer", "time"),
        ("L40S 和 A6000 训练 13b lora 速度差多少", "answer", "compare"),
        ("13b lora bs 4 ga minus 2", "clarify", "need_memory"),
        ("glm-130b int4 on an A100 80GB?", "answer", "fit"),
        ("七百亿参数的模型推理至少几张四零九零", "answer", "need_gpu"),
        ("vllm llama3 70b awq 2x3090 max ctx?", "answer", "max_seq"),
        ("what size model can I lora on a 3090?", "answer", "max_model"),
        ("lora 8b: 3090 vs 4090?", "answer", "compare"),
        ("why does 7b full need so much", "answer", "explain"),
        ("7b lora OOM on 24GB, how to reduce?", "answer", "advice"),
        ("llama3 8b qlora on 24GB, how long?", "clarify", "time"),
        ("help", "answer", "help"),
        ("8G显存 int4可以lora微调吗", "clarify", "fit"),
        ("/vram model:7b optimizer:sgdd gpu:24GB", "clarify", "fit"),
        ("lol my gpu fan is so loud today", "ignore", "other"),
        ("thanks, that worked!", "ignore", "other"),
        ("meeting moved to room 4090 at 8b", "ignore", "other"),
        ("got 2 B and 3 A this term, 80 in math", "ignore", "other"),
        ("中午吃什么", "ignore", "other"),
        ("lora is a nice name", "ignore", "other"),
        ("claude told me a joke", "ignore", "other"),
        ("I have a 4090 and a cat", "ignore", "other"),
        ("7b", "answer", "need_memory"),
        ("4090", "clarify", "fit"),
        ("phi lora", "answer", "need_memory"),
        ("can 3090 do it", "clarify", "fit"),
        ("/vram", "clarify", "need_memory"),
        ("gpt-4 lora", "clarify", "need_memory"),
        ("claude 3 lora 24gb", "clarify", "fit"),
        ("/vram model:7b foo:bar", "clarify", "need_memory"),
        ("/vram model:7b method:foo gpu:24GB", "clarify", "fit"),
        ("/vram model:7b gpu:24GB batch:lots", "clarify", "fit"),
        ("can a 3060 do stable diffusion xl?", "refuse", "other"),
    ],
)
def test_reply_and_question(text: str, reply: str, question: str) -> None:
    found = understand(text)
    assert (found.reply, found.question) == (reply, question)


def test_an_open_method_gives_every_reading() -> None:
    found = understand("vram to finetune 3b? 12gb enough?")
    assert [run["method"] for run in found.runs] == ["full", "lora", "qlora"]
    assert found.missing == ["method"]


def test_an_open_task_gives_inference_and_training() -> None:
    found = understand("一张5090能跑32b吗")
    assert [run["task"] for run in found.runs] == ["infer", "train"]
    assert "task" in found.missing


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("lora 8b int4 24g", {"method": "qlora", "weight_format": "nf4"}),
        ("qlora 8b 24g", {"method": "qlora", "weight_format": "nf4"}),
        ("lora 8b gptq 24g", {"method": "lora", "weight_format": "gptq-4bit-g128"}),
        ("llama3 8b inference ctx 32k 8g", {"task": "infer", "context_len": 32768}),
        ("llama3 70b awq with vllm on 2x3090", {"task": "serve", "parallel": {"tensor": 2}, "gpu_count": 2}),
        ("7b full zero3 8xA100 80G", {"parallel": {"engine": "deepspeed", "zero": 3, "data": 8}}),
        ("7b full zero3 offload 4x3090", {"offload": {"optimizer": "cpu", "parameters": "cpu"}}),
        ("7b lora r=64 24g bs 2", {"adapter": {"rank": 64}, "micro_batch": 2}),
        ("16 users 8k each llama 3.1 70b fp8 on 4 h100", {"task": "serve", "concurrency": 16, "context_len": 8192}),
        ("7b lora dpo ooms where sft was fine", {"stage": "dpo", "task": "train"}),
    ],
)
def test_what_the_words_imply(text: str, fields: dict[str, Any]) -> None:
    run = only(understand(text))
    assert {name: run.get(name) for name in fields} == fields


def test_a_family_and_sizes_elsewhere_are_several_models() -> None:
    found = understand("lora微调72Bqwen要多大显存，8卡A800")
    assert only(found)["resolved_model"] == "Qwen/Qwen-72B"
    several = understand("单卡3090(24G) qlora 7B/13B 确定能训吗")
    assert [run["params_b"] for run in several.runs] == [7, 13]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("and with 4-bit?", {"method": "qlora", "weight_format": "nf4", "gpu": "3090"}),
        ("那4090x2呢", {"method": "lora", "gpu": "4090", "gpu_count": 2}),
        ("换成A100呢", {"method": "lora", "gpu": "A100"}),
        ("what about bs4 ga8 seq 4k", {"micro_batch": 4, "grad_accum": 8, "seq_len": 4096, "gpu": "3090"}),
        ("and full fine-tuning?", {"method": "full", "gpu": "3090"}),
        ("what if I only have two", {"method": "lora", "gpu": "3090", "gpu_count": 2}),
        ("how about qwen2.5-7b?", {"resolved_model": "Qwen/Qwen2.5-7B", "method": "lora", "gpu": "3090"}),
    ],
)
def test_follow_ups_keep_the_rest(text: str, fields: dict[str, Any]) -> None:
    run = only(understand(text, [LLAMA]))
    assert {name: run.get(name) for name in fields} == fields


def test_follow_ups_build_on_each_other() -> None:
    run = only(understand("and on two 4090?", [LLAMA, "and with 4-bit?", "thanks!"]))
    assert (run["method"], run["gpu"], run["params_b"]) == ("qlora", "4090", pytest.approx(8.03, abs=0.01))


def test_a_whole_new_question_starts_afresh() -> None:
    run = only(understand("qwen2.5-7b full on 80GB, does it fit?", [LLAMA]))
    assert (run["method"], run["gpu"]) == ("full", "80GB")


@given(st.text(max_size=120))
def test_any_text_is_understood_somehow(text: str) -> None:
    found = understand(text)
    assert found.reply in ("answer", "clarify", "ignore", "refuse")
    assert found.reply != "answer" or found.question == "help" or all(run.get("model") for run in found.runs)


@given(
    st.lists(
        st.sampled_from(MIXED),
        max_size=9,
    )
)
def test_any_mix_of_our_words_is_understood_somehow(words: list[str]) -> None:
    assert understand(" ".join(words)).reply in ("answer", "clarify", "ignore", "refuse")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("llama 70b lora", "meta-llama/Llama-3.1-70B"),
        ("lama 3 8b lora", "meta-llama/Meta-Llama-3-8B"),
        ("deepseek 7b lora", "deepseek-ai/deepseek-llm-7b-base"),
        ("deepseek r1 lora", "deepseek-ai/DeepSeek-R1"),
        ("百川13b lora", "baichuan-inc/Baichuan-13B-Base"),
        ("羊驼13b 全参", "meta-llama/Llama-2-13b-hf"),
        ("深度求索 7b lora", "deepseek-ai/deepseek-llm-7b-base"),
        ("foobar 7b lora", "Qwen/Qwen2.5-7B"),
        ("phi-3-medium lora", "microsoft/Phi-3-medium-4k-instruct"),
        ("bge-large lora", "BAAI/bge-large-en-v1.5"),
    ],
)
def test_a_family_and_a_size(text: str, model: str) -> None:
    assert only(understand(text))["resolved_model"] == model


@pytest.mark.parametrize(("text", "family"), [("foobar 7b lora", "foobar"), ("lora for that 7b", ""), ("qwen 7b", "")])
def test_a_family_that_is_not_known_is_said(text: str, family: str) -> None:
    assert understand(text).unknown_family == family


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("70B sft和lora 32G", "method", ["full", "lora"]),
        ("min number of A100 for 32B lora? possible with 4 or fewer", "gpu_count", [4]),
        ("vllm 70b 2x tp4 or 1x tp8 A100", "parallel", [{"tensor": 4, "data": 2}, {"tensor": 8}]),
        ("7b lora A800", "gpu", ["A800 80GB"]),
        ("7b lora RTX 3060", "gpu", ["RTX 3060"]),
        ("7b lora A100 1g.5gb", "gpu", ["A100 1g.5gb"]),
        ("7b lora MIG 1g.10gb", "gpu", ["MIG 1g.10gb"]),
    ],
)
def test_fields_of_each_run(text: str, name: str, values: list[Any]) -> None:
    assert [run.get(name) for run in understand(text).runs] == values


@pytest.mark.parametrize(
    "text",
    ["1" * 100_000, "8x" * 50_000, "foobar 7b " * 10_000, "百川" * 50_000, "a-" * 50_000, "/vram " + "a:b " * 25_000],
)
def test_a_flood_is_read_in_no_time(text: str) -> None:
    understand(text)
    start = process_time()
    assert understand(text).reply
    assert process_time() - start < 0.15


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("full fine-tune qwen2.5 7b with torch.compile on an H100", "compile", True),
        ("qwen2.5 7b lora 开 torch.compile 24G 卡够吗", "compile", True),
        ("llama3 8b full fine-tune, optimizer in backward, on a 4090", "optimizer_impl", "in-backward"),
    ],
)
def test_compiled_steps_and_steps_inside_the_backward(text: str, field: str, value: object) -> None:
    assert all(run[field] == value for run in understand(text).runs)
