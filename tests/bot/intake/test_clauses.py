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
        ("3b full on 2x L40S, 8b lora on one of them", {("3b", "full", "L40S", 2), ("8b", "lora", "L40S", 1)}),
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


def test_cards_joined_by_a_plus_are_one_machine() -> None:
    (run,) = understand("3090 + 3060 12g, can I split a 34b q4 over them?").spoken
    assert (run["gpu"], run["gpu_count"]) == (["3090", "3060"], 2)
    assert "economics" not in run  # "q4 over them" counts no years


def test_only_runs_on_several_cards_are_sharded() -> None:
    runs = understand("fsdp full 7b on 4x A6000 and lora 13b on one of them").spoken
    assert [("parallel" in run) for run in runs] == [True, False]


@pytest.mark.parametrize("text", ["difference between r=8 and r=256, 7b lora", "7b lora r8 vs r256"])
def test_ranks_set_against_each_other(text: str) -> None:
    question = understand(text)
    assert question.question == "compare"
    assert [run["adapter"]["rank"] for run in question.spoken] == [8, 256]
