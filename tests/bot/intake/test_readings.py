"""What single words and numbers are read as."""

from typing import Any

import pytest

from bot.intake.understand import read_sheet


def read(text: str) -> dict[str, Any]:
    return {one.field: one.value for one in read_sheet(text).readings}


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("bs4", "micro_batch", 4),
        ("batch size = 8", "micro_batch", 8),
        ("批大小为 8", "micro_batch", 8),
        ("per_device_train_batch_size 2", "micro_batch", 2),
        ("seq 4k", "seq_len", 4096),
        ("4K长文本", "seq_len", 4096),
        ("4096个token", "seq_len", 4096),
        ("bsz 4", "micro_batch", 4),
        ("batches of 4", "micro_batch", 4),
        ("max_length 16384", "seq_len", 16384),
        ("32k context", "seq_len", 32768),
        ("2048 tokens", "seq_len", 2048),
        ("上下文 8k", "seq_len", 8192),
        ("7b 2048", "seq_len", 2048),
        ("ga8", "grad_accum", 8),
        ("梯度累积 16", "grad_accum", 16),
        ("lora_rank 64", "rank", 64),
        ("3 epochs", "epochs", 3),
        ("10k samples", "samples", 10_000),
        ("3 epochs of 52k alpaca", "samples", 52_000),
        ("two epochs on 30k rows", "epochs", 2),
        ("长度二零四八", "seq_len", 2048),
        ("1万条数据", "samples", 10_000),
        ("内存800G", "host_ram_gib", 800),
        ("laptop with 24GB of RAM", "host_ram_gib", 24),
        ("15h30m", "hours", 15.5),
        ("12$/h", "price_usd_per_hour", 12),
        ("tp2", "tensor", 2),
        ("tensor parallel 8", "tensor", 8),
        ("full fine-tuning", "method", "full"),
        ("全参", "method", "full"),
        ("qlroa", "method", "qlora"),
        ("from scratch", "stage", "pretrain"),
        ("DPO", "stage", "dpo"),
        ("奖励模型", "stage", "reward"),
        ("偏好对齐", "stage", "dpo"),
        ("embedding fine-tuning", "stage", "embed"),
        ("向量模型", "stage", "embed"),
        ("8 generations", "num_generations", 8),
        ("8 generations 4090x2", "num_generations", 8),
        ("num_generations 4", "num_generations", 4),
        ("每个提示8个回答", "num_generations", 8),
        ("group size 16", "num_generations", 16),
        ("max completion length 2048", "max_completion_len", 2048),
        ("beta 0.04", "beta", 0.04),
        ("vllm sleep mode", "sleep", "on"),
        ("2 images", "images", 2),
        ("4张图 448x448", "images", 4),
        ("images of 1024x768", "image_size", (1024, 768)),
        ("qwen2.5-vl-7b 448x336", "image_size", (448, 336)),
        ("推理", "task", "infer"),
        ("微调", "task", "train"),
        ("4-bit", "weight_format", "4bit"),
        ("bnb 4bit", "weight_format", "nf4"),
        ("Q4_K_M", "weight_format", "Q4_K_M"),
        ("awq", "weight_format", "awq-4bit-g128"),
        ("fp16", "precision", "fp16"),
        ("8bit adam", "optimizer", "adamw-8bit"),
        ("Adam-mini", "optimizer", "adam-mini"),
        ("no gradient checkpointing", "gradient_checkpointing", "none"),
        ("flash attention 2", "attention", "flash2"),
        ("zero3", "parallelism", "zero3"),
        ("ZeRO stage 2", "parallelism", "zero2"),
        ("fsdp", "parallelism", "fsdp"),
        ("cpu offload", "offload", "both"),
        ("vllm", "engine", "vllm"),
        ("LLaMA-Factory", "framework", "llama-factory"),
        ("10k samples x 1k tokens", "seq_len", 1000),
        ("/vram checkpointing:none", "gradient_checkpointing", "none"),
        ("deepseek r1", "model", "deepseek r1"),
        ("qwen r16", "rank", 16),
        ("method:lora rank:8", "rank", 8),
        ("offload:nvme", "offload", "nvme"),
    ],
)
def test_a_reading(text: str, field: str, value: Any) -> None:
    assert read(text).get(field) == value


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("got 2 B and 3 A", "size"),
        ("adaptive", "optimizer"),
        ("bs4 seq 4k", "gpu_count"),
        ("shift8 q4096", "weight_format"),
        ("rank 24GB", "rank"),
        ("on 1 H100", "hours"),
        ("RTX 4090 D", "hours"),
        ("deepseek r1", "rank"),
        ("昇腾910B", "size"),
        ("offload:none", "offload"),
        ("a 4090", "model"),
    ],
)
def test_what_must_not_be_read(text: str, field: str) -> None:
    assert field not in read(text)


@pytest.mark.parametrize(
    ("text", "invalid"),
    [
        ("batch -4 seq 0", ["micro_batch", "seq_len"]),
        ("seq 999999999999", ["seq_len"]),
        ("gpu:0GB", ["memory_gb"]),
        ("bs 1.5", ["micro_batch"]),
        ("1000000b model", ["params_b"]),
        ("0 x 4090", ["gpu_count"]),
        ("-5b lora", ["params_b"]),
    ],
)
def test_impossible_values_are_named(text: str, invalid: list[str]) -> None:
    assert read_sheet(text).invalid == invalid


def test_every_reading_has_its_words_and_reason() -> None:
    for one in read_sheet("llama3 8b qlora bs 4 seq 4k on 2x4090 with zero3").readings:
        assert one.text
        assert one.why
