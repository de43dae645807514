"""Counts, nodes and memory that stand apart from their cards."""

from typing import Any

import pytest

from bot.intake.understand import understand

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
        ("mac studio 512gb 405b q4", {"gpu": "mac studio 512GB", "memory_gb": 512}),
        ("macbook M2 llama 3 8b q4 16gb", {"gpu": "macbook M2 16GB", "memory_gb": 16}),
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
