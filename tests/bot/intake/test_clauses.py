"""Messages that tell of several runs, each in a clause of its own, and those that ask for every combination."""

import pytest

from bot.intake.understand import understand


def told(text: str) -> set[tuple[object, ...]]:
    names = ("model", "method", "gpu", "gpu_count", "seq_len")
    return {tuple(run[name] for name in names if name in run) for run in understand(text).spoken}


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (
            "does 7B lora fit a 4090 and 13B qlora a 3090?",
            {("7B", "lora", "4090", 1), ("13B", "qlora", "3090", 1)},
        ),
        (
            "can i qlora 70b on 2x3090 and full finetune 1.5b on a 4090",
            {("70b", "qlora", "3090", 2), ("1.5b", "full", "4090", 1)},
        ),
        ("7b lora at seq 4k, or qlora at 16k? 4090", {("7b", "lora", "4090", 4096), ("7b", "qlora", "4090", 16384)}),
        ("用4090 lora微调7b，用3090 qlora微调14b，放得下吗", {("7b", "lora", "4090"), ("14b", "qlora", "3090")}),
    ],
)
def test_each_clause_is_a_run(text: str, runs: set[tuple[object, ...]]) -> None:
    assert told(text) == runs


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("7b or 13b, lora or qlora, on a 4090", 4),
        ("4090 7b lora qlora", 2),
        ("7b lora qlora 13b on a 4090", 4),
        ("lora or qlora for 7b on a 3090 or a 4090", 4),
        ("7b, 13b and 70b with lora or qlora on an A100 80GB", 6),
    ],
)
def test_what_is_listed_is_combined(text: str, count: int) -> None:
    assert len(told(text)) == count
