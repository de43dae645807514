"""Rows of a comparison can be told from each other."""

import pytest

from bot.service import ask


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("7b lora gradient checkpointing on vs off 24g", ["gradient checkpointing on", "no gradient checkpointing"]),
        ("7b full adamw vs 8bit adam 80g", ["adamw", "adamw-8bit"]),
        ("7b full zero2 vs zero3 8xA100 80g", ["ZeRO-2", "ZeRO-3"]),
        ("qwen3-8b fp8 vs fp16 kv cache 32k 24g", ["KV fp8", "KV fp16"]),
    ],
)
def test_the_rows_say_what_differs(text: str, rows: list[str]) -> None:
    lines = [line.strip() for line in ask(text, lang="en").text.splitlines()]
    assert all(any(line.startswith(f"{row} ") for line in lines) for row in rows)
