"""Whether a card's own price is asked about, where, and of which kind."""

from typing import Any

import pytest

from bot.intake.understand import understand


@pytest.mark.parametrize(
    ("text", "rents"),
    [
        ("H100 per hour price?", {"region": "", "spot": None}),
        ("how much is an a100 80g an hour", {"region": "", "spot": None}),
        ("4090租一小时多少钱", {"region": "", "spot": None}),
        ("spot price of h100 in the us", {"region": "US", "spot": True}),
        ("on-demand h200 price europe", {"region": "Europe", "spot": False}),
        ("国内A100按需租金", {"region": "CN", "spot": False}),
        ("香港H100竞价多少钱一小时", {"region": "HK", "spot": True}),
        ("新加坡 a100 租金", {"region": "Asia-Pacific", "spot": None}),
        ("cheapest gpu to rent", {"region": "", "spot": None}),
    ],
)
def test_prices_of_cards(text: str, rents: dict[str, Any]) -> None:
    asked = understand(text)
    assert (asked.reply, asked.question) == ("answer", "price")
    assert asked.rents is not None
    assert {name: asked.rents[name] for name in rents} == rents


@pytest.mark.parametrize(
    "text",
    [
        "cost to full ft 7b on 4xH100, 200M tokens",  # of a run
        "7b lora on an h100",
        "is it cheaper to buy a 4090 or rent one for 6 months",  # owning against renting
        "how much vram does an h100 have",
        "price of milk",
    ],
)
def test_other_questions_are_none(text: str) -> None:
    assert understand(text).rents is None


def test_cards_are_kept_with_their_number() -> None:
    asked = understand("租8卡A800一天多少钱")
    assert asked.rents is not None
    assert asked.spoken == [{"gpu": "A800 80GB", "gpu_count": 8}]
