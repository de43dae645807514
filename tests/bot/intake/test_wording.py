"""What is asked, however it is worded; changes told against what was; versions; Chinese names of families."""

from typing import Any

import pytest

from bot.intake.understand import Question, read_sheet, understand


def fields(question: Question, name: str) -> list[Any]:
    return [run.get(name) for run in question.runs]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("7b lora 24g 爆显存，怎么把占用压下去", "advice"),
        ("qwen2.5 14b qlora OOM on a 3060, how do I solve this", "advice"),
        ("qwen2.5 14b qlora 3060 显存不够咋处理", "advice"),
        ("llama3 8b lora 3090 显存怎么才涨了这么点", "explain"),
        ("llama3 8b 推理显存怎么算", "explain"),
        ("how do I calculate the vram of llama3 8b", "explain"),
        ("13b 全参 A100 80G 为什么会爆", "diagnose"),
        ("13b full on A100 80G OOM, why", "diagnose"),
        ("13b full OOM on A100 80G but 7b is fine, why", "explain"),
        ("mistral 7b lora OOM on a 3090, thought 16GB is plenty?", "explain"),
        ("7b lora OOM on a 3060. will a 3090 be enough?", "fit"),
        ("32b lora 爆显存了，换成A100 80G够吗", "fit"),
        ("7b lora 2x3090, exit code 137", "diagnose"),
        ("qwen3 8b lora 显示占 20G 正常吗", "explain"),
        ("how large a qwen3 can I serve on 2x4090", "max_model"),
        ("H200 per day?", "price"),
        ("number of hours to finetune 7b on 4x4090 with 20k samples of 1k tokens", "time"),
    ],
)
def test_the_question(text: str, question: str) -> None:
    assert understand(text).question == question


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("7b lora bs1，64G内存", "micro_batch", 1),
        ("7b lora batch:-2", "micro_batch", None),
        ("长度拉到16k", "seq_len", 16384),
        ("batch 提到 8", "micro_batch", 8),
        ("4090 128G memory", "host_ram_gib", 128),
        ("12G显存 32G内存", "host_ram_gib", 32),
        ("32g内存 4060 8g", "host_ram_gib", 32),
        ("4x A100 with 160GB memory", "host_ram_gib", None),
        ("mac studio m2 ultra 192G内存", "host_ram_gib", None),
        ("7b lora 实测19.5G", "hardware", None),
        ("vllm 0.10.2 gpu util 0.85", "gpu_memory_utilization", 0.85),
        ("lora_r 64", "method", "lora"),
        ("强化学习", "stage", "grpo"),
        ("no fa2", "attention", "eager"),
    ],
)
def test_what_a_number_or_word_is(text: str, field: str, value: object) -> None:
    assert {one.field: one.value for one in read_sheet(text).readings}.get(field) == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("half the length?", "seq_len", 2048),
        ("长度砍半", "seq_len", 2048),
        ("序列长度缩到一半呢", "seq_len", 2048),
        ("what about twice the batch size", "micro_batch", 8),
        ("batch翻倍呢", "micro_batch", 8),
        ("batch开3倍", "micro_batch", 12),
        ("double the cards", "gpu_count", 4),
        ("卡数翻倍", "gpu_count", 4),
        ("half the rank", "adapter", {"rank": 16}),
        ("长度翻倍到 6144", "seq_len", 6144),
        ("double the batch to 10", "micro_batch", 10),
        ("卡数翻倍到 8", "gpu_count", 8),
    ],
)
def test_a_size_told_against_what_was(text: str, name: str, value: object) -> None:
    said = ["qwen2.5 7b lora r32 bs4 seq 4096 2x3090"]
    after = understand(text, said)
    assert fields(after, name) == [value]
    assert fields(after, "model") == ["qwen2.5 7b"]


def test_a_factor_of_something_else_changes_no_size() -> None:
    assert "micro_batch" not in understand("does half precision double the speed of 7b lora?").runs[0]


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("百川2-13B lora", "baichuan-inc/Baichuan2-13B-Base"),
        ("通义千问2.5-14B 推理", "Qwen/Qwen2.5-14B"),
        ("通义千问Qwen2.5-14B 推理", "Qwen/Qwen2.5-14B"),
        ("书生浦语2 20b lora", "internlm/internlm2-20b"),
        ("智谱 chatglm3-6b lora", "zai-org/chatglm3-6b"),
        ("零一万物34b lora", "01-ai/Yi-34B"),
    ],
)
def test_a_family_by_its_chinese_name(text: str, resolved: str) -> None:
    assert set(fields(understand(text), "resolved_model")) == {resolved}


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("vllm 0.11 qwen3-8b 4090", {"vllm": "0.11"}),
        ("transformers==4.45.2 torch 2.4 7b full", {"transformers": "4.45.2", "torch": "2.4"}),
        ("cuda 12.1 7b full 80g", None),
        ("vllm 0.9 gpu util qwen3-8b 24g", None),
    ],
)
def test_versions(text: str, stack: dict[str, str] | None) -> None:
    found = understand(text).runs[0]
    assert found.get("stack") == stack
    assert found.get("gpu_count") is None


@pytest.mark.parametrize(
    ("text", "gpu", "memory"),
    [
        ("2080ti魔改22g 两张 7b lora", "RTX 2080 Ti 22GB", 22),
        ("两块K80 各11G 7b lora", "K80", 11),
        ("4张A10G 每张22G 7b lora", "A10G", 22),
        ("qwen3 8b lora shows 21GB on 3090, why", "3090", None),
        ("gemma-3-27b IQ4_XS 18GB on my rtx 4080", "rtx 4080", None),
        ("-c 32768 12GB card 7b", "12GB", 12),
    ],
)
def test_memory_and_cards(text: str, gpu: str, memory: float | None) -> None:
    found = understand(text)
    assert (set(fields(found, "gpu")), set(fields(found, "memory_gb"))) == ({gpu}, {memory})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "sglang qwen3-32b on 2x RTX 3090 + 64 GB RAM: --context-length 16384 --tp-size 2, can that work",
            {"gpu": "RTX 3090", "gpu_count": 2, "host_ram_gib": 64, "model": "qwen3-32b", "context_len": 16384},
        ),
        (
            "vllm serve Qwen/Qwen3-32B -tp 4 --max-model-len 10000 --dtype float16，4张A10每张24g，启动时显存不足",
            {"gpu": "A10", "gpu_count": 4, "context_len": 10000, "precision": "fp16"},
        ),
    ],
)
def test_words_beside_a_command_say_what_it_leaves_open(text: str, wanted: dict[str, object]) -> None:
    (run,) = understand(text).runs
    assert {name: run.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        ("4xRTX 4070 SUPER enough for 13b lora?", "RTX 4070 SUPER", 4),
        ("2xTesla T4 7b qlora", "Tesla T4", 2),
        ("8xNVIDIA A100 80GB 13b full", "NVIDIA A100 80GB", 8),
        ("7b lora on 2x RX 7900 XT", "RX 7900 XT", 2),
        ("7b lora RTX PRO 6000 Blackwell Max-Q x 2", "RTX PRO 6000 Blackwell Max-Q", 2),
        ("7b lora mi250 x 8", "mi250", 8),
        ("7b lora 7900XT x 2", "7900XT", 2),
        ("7b lora Ascend-910B*4", "Ascend-910B", 4),
        ("13b full a100 80g sxm *8", "a100 SXM 80GB", 8),
        ("r9700 7b lora", "r9700", None),
        ("8 GB200 70b full", "GB200", 8),
    ],
)
def test_cards_and_their_number(text: str, gpu: str, count: int | None) -> None:
    found = understand(text)
    assert (fields(found, "gpu")[0], fields(found, "gpu_count")[0]) == (gpu, count)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("llama v2 70b lora", "meta-llama/Llama-2-70b-hf"),
        ("qwen v2.5 7b lora", "Qwen/Qwen2.5-7B"),
        ("mixtral 8x22 qlora", "mistralai/Mixtral-8x22B-v0.1"),
        ("alpaca 13b lora", "huggyllama/llama-13b"),
        ("7b lora 3 epochs of 52k alpaca", "Qwen/Qwen2.5-7B"),
    ],
)
def test_a_model_in_other_words(text: str, resolved: str) -> None:
    assert set(fields(understand(text), "resolved_model")) == {resolved}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("70b qlora fsdp 2x3090", "gpu_count", 2),
        ("7b full deepspeed3 8xA100", "parallel", {"engine": "deepspeed", "zero": 3, "data": 8}),
        ("7b full deepspeed 3 gpus 3090", "gpu_count", 3),
        ("7b full tp2 dp4", "parallel", {"data": 4, "tensor": 2}),
        ("7b w4a16 推理", "gpu", None),
        ("7b w4a16 推理", "weight_format", "gptq-4bit-g128"),
        ("7b 3bit", "weight_format", "Q3_K_M"),
        ("7b iq2_xxs", "weight_format", "IQ2_XXS"),
        ("7b full optim adamw_8bit", "optimizer", "adamw-8bit"),
        ("7b lora gradient_checkpointing=False", "gradient_checkpointing", "none"),
        ("7b lora 没开gc", "gradient_checkpointing", "none"),
        ("7b lora 开了gc", "gradient_checkpointing", "full"),
        ("7b lora packing", "packing", True),
        ("7b lora no packing", "packing", False),
        ("7b lora 单卡batch_size 2", "gpu_count", None),
        ("7b lora 单卡batch_size 2", "micro_batch", 2),
        ("7b lora 累积8步", "grad_accum", 8),
        ("7b lora len=3000", "seq_len", 3000),
        ("7b lora 长度3万2", "seq_len", 32000),
        ("7b 推理 128k上下文 10个并发", "context_len", 131072),
        ("7b 推理 128k上下文 10个并发", "concurrency", 10),
        ("7b serve 4k in 1k out", "context_len", 4096),
        ("7b serve 4k in 1k out", "new_tokens", 1024),
        ("7b lora 显存24", "gpu", "24GB"),
        ("7b full 3D parallel tp8", "hours", None),
    ],
)
def test_one_field_of_a_run(text: str, name: str, value: object) -> None:
    assert set(map(str, fields(understand(text), name))) == {str(value)}


def test_types_of_the_cache_against_each_other_share_an_engine() -> None:
    found = understand("llama3 8b fp8 vs fp16 kv cache 32k")
    assert found.question == "compare"
    assert fields(found, "kv_cache") == [{"dtype": "fp8"}, {"dtype": "fp16"}]
    assert fields(found, "engine") == ["vllm", "vllm"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("is a 3090 alright for llama3 8b qlora, enough?", "fit"),
        ("how does a 12GB card do with 7b qlora, enough?", "fit"),
        ("how big a batch fits 7b lora on a100 40g", "max_batch"),
        ("4090部署7b能支持多少并发", "max_batch"),
        ("qwen3-8b 4090 上下文能到多少", "max_seq"),
        ("how far can I push context on 24gb with gemma 27b q4", "max_seq"),
        ("what can i run on a 3060", "max_model"),
        ("8g显存能跑什么大模型", "max_model"),
        ("训练7b 1B tokens 8张A100几天", "time"),
        ("training time 70b qlora 2xH100 5k samples", "time"),
        ("finetune 13b 50k samples price?", "cost"),
        ("租8卡H800一个月多少", "cost"),
        ("A100现在什么价", "price"),
        ("7b lora 显存都花在哪", "explain"),
        ("梯度检查点为什么能省显存", "explain"),
        ("best settings for 7b qlora on 12gb", "advice"),
        ("need to cut memory for 7b full ft on 40gb", "advice"),
        ("recommend a card for running 32b", "need_gpu"),
        ("my 7b lora uses 22GB on a 4090, shouldn't it be 16?", "explain"),
        ("my 7b lora should be 16GB, does it fit a 4090?", "fit"),
    ],
)
def test_more_questions(text: str, question: str) -> None:
    assert understand(text).question == question


def test_a_card_before_a_word_for_lengths_is_no_length() -> None:
    assert understand("qwen3-8b 4090 上下文能到多少").runs[0]["gpu"] == "4090"
    assert understand("7b lora 2000 tokens").runs[0]["seq_len"] == 2000


def test_the_rows_of_a_named_set() -> None:
    assert understand("how long for 1 epoch of alpaca 52k with 7b qlora on 3090").runs[0]["samples"] == 52_000


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("13b lora 2x3090 爆了，有什么解决办法", "advice"),
        ("sft of 70b OOM on 8*A100 40G. which config would work?", "advice"),
        ("7b lora OOM on 24g, any idea why?", "diagnose"),
        ("4B lora，sft bs能开4，换成dpo开2就OOM，怎么不止两倍", "explain"),
        ("60 hours for 7b lora, 50k samples, 3 epochs on a 3090. is this normal?", "time"),
        ("llama3 70b int8 on 2x3090 OOM, should it fit?", "fit"),
        ("7b full on a 3090 dies with -9. is it hopeless", "fit"),
        ("vllm 推理 3b 显存不足，怎么降低开销", "advice"),
        ("7b finetune: how much is it to pay?", "cost"),
        ("wats teh max seqlen 4 gemma2 9b qlora on t4", "max_seq"),
    ],
)
def test_questions_behind_a_failure_and_others(text: str, question: str) -> None:
    assert understand(text).question == question


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("两张8g卡推理 14b int4，0卡只用2g多，1卡7.8g爆了", "gpu", "8GB"),
        ("/cost model:7b method:lora tokens:200M gpu:4090", "tokens", 2e8),
        ("70b fp16 H100 80G*2, MAX_BATCH_SIZE 4: max sequence length given the KV cache?", "task", "infer"),
        ("游戏本3080 16G显存 7b lora", "gpu", "RTX 3080 Laptop 16GB"),
        ("sft of 70b on 3 sets of 8*A100", "gpu_count", 24),
        ("7b full, gpus peak at 14GB each on 8 4090s", "gpu", "4090"),
    ],
)
def test_one_more_field_of_a_run(text: str, name: str, value: object) -> None:
    assert set(map(str, fields(understand(text), name))) == {str(value)}


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("怎么用", "help"),
        ("怎么用4张3090微调yi-34b", "advice"),
        ("推理deepseek-v2需要什么样的硬件", "need_gpu"),
        ("is A100-40G x 2 equivalent to A100-80G x 1 for 13b full?", "compare"),
        ("24G顯存可以訓練7b lora嗎", "fit"),
        ("4090跑32b推論需要多少記憶體", "need_memory"),
    ],
)
def test_use_and_traditional_characters(text: str, question: str) -> None:
    assert understand(text).question == question


def test_traditional_characters_name_the_same_run() -> None:
    (run, *_) = understand("兩張3090微調13b夠嗎").runs
    assert (run["gpu"], run["gpu_count"], run["task"]) == ("3090", 2, "train")
