"""How people really write: counts in words, round lengths, changes, rivals, what is asked in passing."""

from typing import Any

import pytest

from bot.intake.understand import read_sheet, understand

CARD = "7b lora on a 3090?"


def only(text: str, *history: str) -> dict[str, Any]:
    return understand(text, list(history)).spoken[0]


@pytest.mark.parametrize(
    ("text", "count", "gpu"),
    [
        ("7b lora dual 3090s", 2, "3090"),
        ("7b lora on two 32GB gpus", 2, "32GB"),
        ("7b lora 2个40g", 2, "40GB"),
        ("7b lora 2 24GB 3090s", 2, "3090"),
        ("7b lora 8x a100 40", 8, "a100 40GB"),
        ("13b full on h200s x 4", 4, "h200"),
        ("70b lora 两机16卡A100 40G", 16, "A100 40GB"),
        ("70b lora 两台8卡A100 40G", 16, "A100 40GB"),
        ("7b lora 单机16卡*32G*4机", 64, "32GB"),
    ],
)
def test_counts_of_cards(text: str, count: int, gpu: str) -> None:
    run = only(text)
    assert run["gpu_count"] == count
    assert str(run["gpu"]).startswith(gpu)


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("7b lora on A800-80G", "A800 80GB"),
        ("7b q4 on a laptop 4060", "RTX 4060 Laptop"),
        ("7b lora 昇腾910B 64G", "Ascend 910B"),
        ("7b q4 mac mini m4 pro 48g", "M4 Pro"),
        ("7b q4_k_m 6GB card", "6GB"),
        ("7b lora 2080ti 22g魔改", "2080ti"),
    ],
)
def test_names_of_cards(text: str, gpu: str) -> None:
    assert gpu in str(only(text)["gpu"])


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("seq 200k", "seq_len", 200_000),
        ("seq 100k", "seq_len", 100_000),
        ("10k context", "seq_len", 10_000),
        ("seq 40k", "seq_len", 40_960),
        ("ctx 160k", "seq_len", 163_840),
        ("seq 12k", "seq_len", 12_288),
        ("每条1k token", "seq_len", 1000),
        ("百万 tokens 预训练", "tokens", 1_000_000),
        ("一百万 tokens 预训练", "tokens", 1_000_000),
        ("两千万 tokens", "tokens", 20_000_000),
        ("batch 三十二", "micro_batch", 32),
        ("3 epochs 50k samples", "epochs", 3),
        ("1 epoch 1M instruction data", "samples", 1_000_000),
        ("40 concurrent users at 8k each", "concurrency", 40),
        ("bs改成4", "micro_batch", 4),
        ("上下文加到32k", "seq_len", 32_768),
        ("batch size up to 8", "micro_batch", 8),
    ],
)
def test_numbers(text: str, field: str, value: float) -> None:
    assert {one.field: one.value for one in read_sheet(text).readings}[field] == value


def test_numbers_keep_out_of_names() -> None:
    assert only("千问3 8b lora")["model"] == "qwen3 8b"
    assert "model" in only("百川 7b lora")


def test_a_change_gives_both_values() -> None:
    runs = understand("rank从8改到64 7b lora", []).spoken
    assert runs[0]["adapter"]["rank"] == 64
    assert [run["micro_batch"] for run in understand("7b lora 4090 bs16改32会爆吗").spoken] == [16, 32]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("how many gpu hours for qlora 70b, 41k rows, one 80gb a100", "time"),
        ("batch能开到多大 qwen2.5-0.5b 全量 8g显存", "max_batch"),
        ("SFT llama 3.2 1b 24GB, longest seq I can do at bs 1?", "max_seq"),
        ("biggest thing I can run on dual 3090s at q4?", "max_model"),
        ("3060 12g能微调多大的模型", "max_model"),
        ("min resources to finetune qwen2.5 7b with LoRA", "need_gpu"),
        ("10亿参数从零训练需要多少张A100", "need_gpu"),
        ("a100 80g per hour price?", "price"),
        ("qwen2 72b lora, why is usage so high", "explain"),
        ("为什么同样7b，qwen2.5比llama2占显存多", "explain"),
        ("zero-2 or zero-3 for 13b full on 8x a100 40?", "compare"),
        ("llama 3 70b inference, 4 or 2 H100s?", "compare"),
        ("bf16 vs fp32 adamw 1b full ft memory", "compare"),
        ("13b at 8bit vs 4bit, how much vram each?", "need_memory"),
        ("7b dpo lora bs2 a100 40g会oom嘛", "fit"),
        ("训练时显存占用忽高忽低，7b lora A100 40g，最后爆了", "diagnose"),
        ("does gradient checkpointing help w/ 13b lora on 2x3090?", "fit"),
        ("how do people fit 70b lora on 48gb?", "advice"),
        ("买张5090自己训划算还是租", "cost"),
        ("finetune qwq 32b with 24g VRAM?", "fit"),
    ],
)
def test_what_is_asked(text: str, question: str) -> None:
    asked = understand(text)
    assert (asked.reply, asked.question) == ("answer", question)


def test_rival_ways_to_shard_are_two_runs() -> None:
    runs = understand("zero2 or zero3 for 13b full on 8x a100 40g?").spoken
    assert [run["parallel"]["zero"] for run in runs] == [2, 3]
    counts = [run["gpu_count"] for run in understand("llama 3 70b inference, 4 or 2 H100s?").spoken]
    assert counts == [4, 2]


@pytest.mark.parametrize("text", ["zero3 on 8xA800, seq 8192 OOM", "fsdp 7b 4xA100 80G"])
def test_sharding_is_training(text: str) -> None:
    assert only(text)["task"] == "train"


def test_the_size_of_a_mixture_is_that_of_all_its_experts() -> None:
    run = understand("moe 8x7b qlora 需要多大显存").runs[0]
    assert run["params_b"] == pytest.approx(46.7, rel=0.01)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("bs改成4", "micro_batch", 4),
        ("try 70b instead", "model", "70b"),
        ("same but dpo", "stage", "dpo"),
        ("with 2 gpus", "gpu_count", 2),
        ("试试qlora", "method", "qlora"),
        ("but on an a6000", "gpu", "a6000"),
    ],
)
def test_follow_ups(text: str, field: str, value: Any) -> None:
    run = only(text, CARD)
    assert run[field] == value
    assert run["task"] == "train"


@pytest.mark.parametrize("text", ["best gaming gpu under $500", "sd webui 8g显存够吗", "wan2.1 文生视频 24g"])
def test_what_is_not_ours(text: str) -> None:
    assert understand(text).reply == "refuse"


@pytest.mark.parametrize(
    "text",
    ["gaming laptop 4060 8gb can it lora 7b", "gaming pc with a 3090, 13b qlora?", "steam deck llama 3 8b q4?"],
)
def test_a_card_for_games_may_hold_a_model(text: str) -> None:
    assert understand(text).reply == "answer"


def test_activations_alone_are_offloaded() -> None:
    assert only("7b lora 24g offload activations cpu")["offload"] == {"activations": "cpu"}


def test_a_cache_is_of_running() -> None:
    assert only("kv cache size of llama3 8b at 32k")["task"] == "infer"
    assert only("1M context qwen2.5 7b on h100")["seq_len"] == 1_000_000


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("8GB model on 12GB card", ["12GB"]),
        ("will a 13GB gguf fit on 16GB", ["16GB"]),
        ("20G的模型 24g显存能跑吗", ["24GB"]),
        ("the 16GB model of the 4060 ti, 7b lora", ["4060 ti"]),
        ("4060 ti 16GB model, 7b lora", ["4060 ti 16GB"]),
    ],
)
def test_the_size_of_a_file_is_no_card(text: str, cards: list[str]) -> None:
    asked = understand(text)
    assert asked.reply in ("answer", "clarify")
    assert [run["gpu"] for run in asked.spoken] == cards


def test_the_stage_of_zero_counts_no_cards() -> None:
    run = only("13b full zero3 A100 80G bs 2")
    assert run["parallel"]["zero"] == 3
    assert "gpu_count" not in run
