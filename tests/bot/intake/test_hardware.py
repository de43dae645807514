"""Cards, their number and memory, in any order."""

import pytest

from bot.intake.understand import read_sheet, understand

Found = tuple[str | None, int | None, float | None]


def cards(text: str) -> list[Found]:
    return [
        (one.gpu, (one.count or 1) * (one.nodes or 1) if one.count else None, one.memory_gb)
        for one in read_sheet(text).values("hardware")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x4090", [("4090", 2, None)]),
        ("4090x2", [("4090", 2, None)]),
        ("4090 * 8", [("4090", 8, None)]),
        ("2 T4", [("T4", 2, None)]),
        ("两张A100 40G", [("A100", 2, 40)]),
        ("4张80G A100", [("A100", 4, 80)]),
        ("8*32g V100", [("V100", 8, 32)]),
        ("4卡3090", [("3090", 4, None)]),
        ("8×H100", [("H100", 8, None)]),
        ("8xA100-80GB", [("A100", 8, 80)]),
        ("一张24G的4090", [("4090", 1, 24)]),
        ("只有4张4090，单卡24G", [("4090", 4, 24)]),
        ("8 RTX A6000(48Gb)", [("RTX A6000", 8, 48)]),
        ("4×24G", [(None, 4, 24)]),
        ("4*A6000 (48GB) or 8*A100 (80GB)", [("A6000", 4, 48), ("A100", 8, 80)]),
        ("5060TI16G", [("5060TI", None, 16)]),
        ("on a 3090", [("3090", 1, None)]),
        ("3 nodes x 8x H100-80GB", [("H100", 24, 80)]),
        ("单机16卡*32G*4机", [(None, 64, 32)]),
        ("2张V100S 32G 每张可用22G", [("V100S", 2, 22)]),
        ("24g卡", [(None, None, 24)]),
        ("a GTX 1650", [("GTX 1650", 1, None)]),
        ("8卡呢", [(None, 8, None)]),
        ("lora on a 4090D", [("4090D", 1, None)]),
        ("RTX 4090 D", [("RTX 4090 D", None, None)]),
        ("with a 5090DV2", [("5090DV2", 1, None)]),
        ("4070 Ti Super", [("4070 Ti Super", None, None)]),
        ("3070ti 笔记本", [("3070ti 笔记本", None, None)]),
        ("A10G 24GB", [("A10G", None, 24)]),
        ("on a 100", []),
        ("8张昇腾910B", [("昇腾910B", 8, None)]),
        ("ascend 910b", [("ascend 910b", None, None)]),
        ("M1 16GB", [("M1", None, 16)]),
        ("M3 Max 64", [("M3 Max", None, 64)]),
        ("Jetson Orin 64GB", [("Jetson Orin", None, 64)]),
        ("q4 3090", [("3090", None, None)]),
        ("fp16 4090", [("4090", None, None)]),
        ("int8 A100", [("A100", None, None)]),
        ("bf16 a100 80", [("a100", None, 80)]),
        ("三张四零九零", [("4090", 3, None)]),
        ("2xL40S, or do I need 4", [("L40S", 2, None), ("L40S", 4, None)]),
        ("2x4090 for a 70b or 3?", [("4090", 2, None), ("4090", 3, None)]),
        ("24G双卡", [(None, 2, 24)]),
        ("2x8 A100", [("A100", 16, None)]),
        ("a pair of A100s", [("A100", 2, None)]),
        ("俩A100", [("A100", 2, None)]),
        ("三十二张A100", [("A100", 32, None)]),
        ("4 or 2 H100s", [("H100", 4, None), ("H100", 2, None)]),
        ("2x3090, seq 2048 or 4096?", [("3090", 2, None)]),
    ],
)
def test_sets_of_cards(text: str, expected: list[Found]) -> None:
    assert cards(text) == expected


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        ("MIG 1g.10gb", None, None),
        ("a100 mig 2g.20gb", "a100", None),
        ("gpu:A100 1g.5gb", "A100", None),
        ("4x H100 3g.40gb", "H100", 4),
    ],
)
def test_slices_are_no_memory_of_a_card(text: str, gpu: str | None, count: int | None) -> None:
    (found,) = read_sheet(text).values("hardware")
    profile = text.split()[-1]
    assert (found.gpu, found.count, found.slice) == (gpu, count, profile)
    assert found.memory_gb == float(profile.split(".")[1].removesuffix("gb"))


@pytest.mark.parametrize(
    "text",
    [
        "colab free 能微调 8b 吗",
        "qlora 7b on free colab?",
        "free colab T4 qlora 7b",
        "免费 colab 能跑 qwen3 4b lora 吗",
    ],
)
def test_free_colab_lends_a_t4(text: str) -> None:
    assert {run["gpu"] for run in understand(text).runs} == {"T4"}
    assert len({str(run) for run in understand(text).runs}) == len(understand(text).runs)
