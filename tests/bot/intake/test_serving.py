"""Questions about serving engines reach the fields that decide."""

from typing import Any

import pytest

from bot.intake.understand import understand


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("ollama llama3.1 70b q4 on 24G", {"engine": "ollama", "weight_format": "Q4_K_M"}),
        ("qwen2.5 32b q4 on 24gb", {"task": "infer", "weight_format": "Q4_K_M"}),
        ("glm-4.5-air int4 inference 4x3090", {"weight_format": "gptq-4bit-g128"}),
        ("glm-4.5-air load_in_4bit inference 4x3090", {"weight_format": "nf4"}),
        ("qwen2.5 32b 4bit inference on a 3090", {"weight_format": "nf4"}),
        ("qwen3 30b-a3b 4bit lora", {"method": "qlora", "weight_format": "nf4"}),
        ("qwen3 30b-a3b 4bit in llama.cpp", {"weight_format": "Q4_K_M"}),
        ("qwen2.5 32b q8 单卡A6000", {"task": "infer", "weight_format": "Q8_0"}),
        ("llama3 8b q4 lora 3060", {"method": "qlora", "weight_format": "nf4"}),
        ("llama 70b q4 in vllm on 2x3090", {"task": "serve", "weight_format": "nf4"}),
        ("gemma 3 27b qat on a 24gb card", {"task": "infer", "weight_format": "Q4_0"}),
        ("llama.cpp qwen3 32b q4_k_m on a 3090 with -ngl 20", {"serving": {"n_gpu_layers": 20}}),
        ("llama.cpp qwen3 235b q4_k_m --n-cpu-moe 94 ctx 32k kv q8_0", {"kv_cache": {"dtype": "q8_0"}}),
        ("which quant of qwen2.5 72b fits 48GB with llama.cpp at 16k?", {"context_len": 16384}),
        ("vllm qwen2.5 7b --gpu-memory-utilization 0.85", {"serving": {"gpu_memory_utilization": 0.85}}),
        ("vllm llama3 8b fp8 kv cache on a 4090", {"kv_cache": {"dtype": "fp8"}}),
    ],
)
def test_engine_options_are_read(text: str, fields: dict[str, Any]) -> None:
    run = understand(text).runs[0]
    assert {name: run.get(name) for name in fields} == fields


@pytest.mark.parametrize(
    "text", ["how many users can llama-3 8b serve on a 4090 with vllm", "4090 跑 vllm llama3 8b 最大并发"]
)
def test_users_are_asked_for(text: str) -> None:
    assert understand(text).question == "max_batch"


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("vllm llama-3.1-8b with 4 lora adapters on 2x 3090 tensor parallel 2", 4),
        ("vllm qwen2.5-7b 8个lora 4090", 8),
        ("vllm llama-3.1-8b max_loras=2 rank 32 on 4090", 2),
        ("vllm qwen2.5-7b with a lora on 4090", 1),
        ("vllm qwen2.5-7b on 4090", None),
    ],
)
def test_adapters_are_served_in_slots(text: str, slots: int | None) -> None:
    (run,) = understand(text).runs
    assert run["task"] == "serve"
    assert (run.get("serving") or {}).get("lora_slots") == slots


def test_adapters_that_are_trained_have_no_slots() -> None:
    (run,) = understand("llama-3.1-8b 2 lora adapters training on 3090").runs
    assert run["method"] == "lora" and "serving" not in run


@pytest.mark.parametrize(
    ("text", "length", "users"),
    [
        ("how many users at 4k each: llama-3.2-3b on T4 with vllm", 4096, None),
        ("sglang qwen3-32b fp8 on 8x H20, how many concurrent 16k users?", 16384, None),
        ("how many H100 for 2k users of llama-3.1-8b with vllm", None, 2000),
        ("llama-3.1-8b vllm H100, 50 users at 8k", 8192, 50),
    ],
)
def test_thousands_beside_users_that_are_asked_for_are_their_tokens(
    text: str, length: int | None, users: int | None
) -> None:
    run = understand(text).runs[0]
    assert (run.get("context_len"), run.get("concurrency")) == (length, users)


@pytest.mark.parametrize(
    ("text", "gpu", "question"),
    [
        ("vllm serve mistralai/Mixtral-8x7B-v0.1 --tensor-parallel-size 2 --max-model-len 32768 on 2x A100 80GB, "
         "how many users?", "A100 80GB", "max_batch"),
        ("vllm serve Qwen/Qwen2.5-32B-Instruct --tensor-parallel-size 2 --max-model-len 32768 --enforce-eager "
         "能在两张 4090 上跑吗？", "4090", "fit"),
        ("python -m sglang.launch_server --model-path Qwen/Qwen2.5-32B-Instruct --tp 2 --context-length 16384 "
         "--mem-fraction-static 0.8, how many users on 2x L40S?", "L40S", "max_batch"),
        ("vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 32768 --port 8000 --dtype bfloat16", None, "need_memory"),
    ],
)  # fmt: skip
def test_words_behind_a_command_are_read_too(text: str, gpu: str | None, question: str) -> None:
    found = understand(text)
    assert found.runs[0].get("gpu") == gpu
    assert found.question == question


@pytest.mark.parametrize(
    ("text", "gpu", "ram"),
    [
        ("用 llama.cpp 跑 GLM-4.5-Air Q4_K_M，一张 4090 加 64G 内存可以吗？", "4090", 64),
        ("4090加128g内存跑deepseek v3 q2_k llama.cpp", "4090", 128),
        ("A100 80G内存 能跑 llama-3.1-70b 吗", "A100 80GB", None),
        ("3090 24G内存 lora 7b", "3090", None),
        ("24G内存的显卡能跑 qwen2.5-32b 吗", "24GB", None),
        ("lora 7b 3090 24G", "3090", None),
    ],
)
def test_memory_beside_a_named_card_is_the_computers(text: str, gpu: str, ram: int | None) -> None:
    run = understand(text).runs[0]
    assert (run.get("gpu"), run.get("host_ram_gib")) == (gpu, ram)
