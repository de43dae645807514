"""Counts, nodes and memory that stand apart from their cards."""

from typing import Any

import pytest

from bot.intake.understand import understand
from estimator.catalogue.gpus import find_gpu

NAMES = ("gpu", "gpu_count", "nodes", "memory_gb")


def cards(text: str, history: list[str] | None = None) -> list[dict[str, Any]]:
    return [{name: run[name] for name in NAMES if name in run} for run in understand(text, history).spoken]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("full llama-3-70b on 2 nodes of 8 H100 with FSDP2", {"gpu": "H100", "gpu_count": 16, "nodes": 2}),
        (
            "2 machines with 8 A100 40G each, lora 70b",
            {"gpu": "A100 40GB", "memory_gb": 40, "gpu_count": 16, "nodes": 2},
        ),
        ("两台8卡H100 全参70b", {"gpu": "H100", "gpu_count": 16, "nodes": 2}),
        ("2台机器每台8张H100 全参70b", {"gpu": "H100", "gpu_count": 16, "nodes": 2}),
        ("16 H100s across 2 nodes lora 70b", {"gpu": "H100", "gpu_count": 16, "nodes": 2}),
        ("2x8xH100 lora 70b", {"gpu": "H100", "gpu_count": 16, "nodes": 2}),
        ("/vram model:7b method:lora gpu:H100 gpu_count:8", {"gpu": "H100", "gpu_count": 8}),
        ("4 GPUs each 24GB, lora 13b", {"gpu": "24GB", "memory_gb": 24, "gpu_count": 4}),
        ("llama 8b lora, 4 gpus with 24gb each", {"gpu": "24GB", "memory_gb": 24, "gpu_count": 4}),
        ("H100 NVL mixtral 8x7b lora fsdp 4 cards", {"gpu": "H100 NVL 94GB", "gpu_count": 4}),
        ("lora 7b on 2 4090", {"gpu": "4090", "gpu_count": 2}),
        ("llama 3.1 70b Q4_K_M ollama 48gb 2x3090", {"gpu": "3090", "memory_gb": 24, "gpu_count": 2}),
        ("70b 4bit 2xA100 160GB", {"gpu": "A100 80GB", "memory_gb": 80, "gpu_count": 2}),
        ("70b 4bit 2xA6000 48GB", {"gpu": "A6000", "memory_gb": 48, "gpu_count": 2}),
        ("qlora 70b 4 gpus 96gb total", {"gpu": "24GB", "memory_gb": 24, "gpu_count": 4}),
        ("lora 1b on GTX 1050 Ti 4GB", {"gpu": "GTX 1050 Ti 4GB", "memory_gb": 4}),
        ("qlora 3b 4gb gtx 1650", {"gpu": "gtx 1650 4GB", "memory_gb": 4}),
        ("mac studio 512gb 405b q4", {"gpu": "Mac Studio 512GB", "memory_gb": 512}),
        ("macbook M2 llama 3 8b q4 16gb", {"gpu": "Apple M2 16GB", "memory_gb": 16}),
    ],
)
def test_parts_join_their_cards(text: str, expected: dict[str, Any]) -> None:
    assert cards(text) == [expected]


def test_counts_alone_are_alternatives() -> None:
    assert [one["gpu_count"] for one in cards("H100 lora 70b 1 card or 4 cards")] == [1, 4]


def test_some_of_the_cards_of_before() -> None:
    assert cards("on 8 of them with zero3", ["full fine-tune 7b on an H100"]) == [{"gpu": "H100", "gpu_count": 8}]
    (fewer,) = cards("on 8 of them", ["full fine-tune 70b on 2 nodes of 8 H100"])
    assert fewer == {"gpu": "H100", "gpu_count": 8}


def test_more_cards_than_there_are_is_asked_back() -> None:
    question = understand("lora 7b on 1000000 4090")
    assert (question.reply, question.invalid) == ("clarify", ["gpu_count"])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("vllm serve 72b awq 2x4090 how many users at 8k context", {"context_len": 8192, "concurrency": None}),
        ("vllm 7b 4090 32 users 4k context", {"context_len": 4096, "concurrency": 32}),
        ("inference 7b 4090 context 1 million tokens", {"context_len": 1_000_000}),
        ("7b 推理 上下文 1百万 tokens", {"context_len": 1_000_000}),
        ("lora 7b on 10000 samples of 512 tokens with a 4090", {"samples": 10_000, "seq_len": 512}),
        ("lora 7b 4090 10k samples 3 epochs", {"samples": 10_000, "epochs": 3}),
        ("vllm 7b 4090 gpu_memory_utilization 0.5", {"gpu": "4090", "gpu_count": None}),
        ("llama3 8b full pipeline 2 2xA100 80g deepspeed", {"parallel": {"engine": "deepspeed", "pipeline": 2}}),
        ("lora 7b on rtx 4090 (24GB), 8 GB used by desktop", {"gpu": "rtx 4090", "reserved_by_others_gib": 7.45}),
        ("lora 7b 4090, 2GiB 被其他程序占用", {"reserved_by_others_gib": 2}),
        ("exllama 70b 4.0bpw on 2x3090", {"weight_format": "exl2-4bpw"}),
        ("pleaze finetunning lama3 8 bilion wiht qlroa 16 gigs", {"method": "qlora", "memory_gb": 16}),
        ("/vram model:7b method:lora gpu:4090 parallelism:zero3", {"parallel": {"engine": "deepspeed", "zero": 3}}),
    ],
)
def test_numbers_keep_their_own_word(text: str, fields: dict[str, Any]) -> None:
    question = understand(text)
    assert (question.reply, question.doubts) == ("answer", [])
    (run,) = question.spoken
    assert {name: run.get(name) for name in fields} == fields


def test_a_negative_batch_before_its_word_is_impossible() -> None:
    assert understand("llama 3 8b -5 batch lora on 3090").invalid == ["micro_batch"]


@pytest.mark.parametrize("text", ["optimizer 换成8bit能省多少 7b全参", "7b full, switch optimizer to 8bit, savings?"])
def test_bits_of_the_optimizer_are_not_those_of_the_weights(text: str) -> None:
    runs = understand(text).spoken
    assert [run["optimizer"] for run in runs] == ["adamw", "adamw-8bit"]
    assert not any("weight_format" in run for run in runs)


def test_what_is_no_language_model_is_refused() -> None:
    assert understand("whisper large v3 fine-tuning 16gb").reply == "refuse"


def test_running_is_inference_as_well() -> None:
    assert {run["task"] for run in understand("12gb 显存最大能跑多大的模型").runs} == {"infer", "train"}


def test_a_list_of_sizes_keeps_its_first() -> None:
    sizes = {run["params_b"] // 1 for run in understand("qwen2.5 7b/14b/32b lora 4090 和 3090 对比").runs}
    assert sizes == {7, 14, 32}


def test_a_member_named_behind_its_family_is_one_model() -> None:
    assert len({run["resolved_model"] for run in understand("how much vram for llama 4 scout inference").runs}) == 1
    assert len(understand("how much vram for llama 4 scout inference").runs) == 1


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("llama 3 8b qlora on 2x 3090 and 1x 4090 fsdp", ["RTX 3090", "RTX 3090", "RTX 4090"]),
        ("llama 3 8b lora zero3 on 3090 + 4090", ["RTX 3090", "RTX 4090"]),
        ("llama 3 8b lora ddp 双卡3090和4090", ["RTX 3090", "RTX 3090", "RTX 4090"]),
    ],
)
def test_unlike_cards_that_share_a_run_are_one_set(text: str, gpus: list[str]) -> None:
    runs = understand(text).runs
    assert [([find_gpu(name).name for name in run["gpu"]], run["gpu_count"]) for run in runs] == [(gpus, len(gpus))]


@pytest.mark.parametrize("text", ["llama 3 8b lora zero3 on 3090 or 4090", "llama 3 8b lora on 3090 and 4090"])
def test_alternatives_stay_apart(text: str) -> None:
    assert len(understand(text).runs) == 2


def test_sequence_parallel_is_no_length() -> None:
    (run,) = understand("llama 3 8b full megatron tp 4 on 4 a100 sequence parallel").runs
    assert run["parallel"]["sequence"] is True and "seq_len" not in run and run["gpu_count"] == 4


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("显存40G，微调7B，序列1024，够么", {"gpu": "40GB", "memory_gb": 40}),
        ("vram 24gb, 7b lora ok?", {"gpu": "24GB", "memory_gb": 24}),
        ("我的显存是16G，7b qlora", {"gpu": "16GB", "memory_gb": 16}),
        ("4090 显存24G 7b lora", {"gpu": "4090", "memory_gb": 24}),
        ("2*3090 显存48G 34b awq", {"gpu": "3090", "memory_gb": 24, "gpu_count": 2}),
        ("显存用了20G 7b lora 正常吗", {}),
    ],
)
def test_memory_that_is_named_is_a_cards(text: str, cards: dict[str, object]) -> None:
    (run,) = understand(text).spoken
    assert {name: run[name] for name in ("gpu", "memory_gb", "gpu_count") if name in run} == cards
