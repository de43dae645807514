"""Prices that a message says: amounts, ranges, currencies and what they are for, in both languages."""

import pytest

from bot.intake.claims import claim_in, currency_in
from bot.intake.understand import understand


@pytest.mark.parametrize(
    ("text", "low", "high", "currency", "per"),
    [
        ("is a 4090 still 15-20k CNY?", 15_000, 20_000, "CNY", "buy"),
        ("can I get an RTX 4090 for 20,000 yuan?", 20_000, 20_000, "CNY", "buy"),
        ("300 to 800 CNY per day for a cloud A100 - true?", 300, 800, "CNY", "day"),
        ("an H100 costs $2.50 an hour, ok?", 2.5, 2.5, "USD", "hour"),
        ("A100 at €900 a month?", 30, 30, "EUR", "day"),
        ("L40S一万五到两万能买到吗", 15_000, 20_000, "CNY", "buy"),
        ("4090 1.5~2万", 15_000, 20_000, "CNY", "buy"),
        ("4090要两万块吗", 20_000, 20_000, "CNY", "buy"),
        ("A100 每天300-800合理吗", 300, 800, "CNY", "day"),
        ("H100租一天要八百元吗", 800, 800, "CNY", "day"),
        ("4090 2.3元/卡时贵吗", 2.3, 2.3, "CNY", "hour"),
        ("H100 包月 15000 元", 500, 500, "CNY", "day"),
    ],
)
def test_claims(text: str, low: float, high: float, currency: str, per: str) -> None:
    found = claim_in(text)
    assert found is not None
    claim, rest = found
    assert (claim.low, claim.high, claim.currency, claim.per) == (low, high, currency, per)
    assert claim_in(rest) is None and len(rest) < len(text)


@pytest.mark.parametrize(
    "text",
    [
        "一张4090能qlora 7b吗", "batch 8 to 16 on 4090", "lora 7b on A100 3 to 5 epochs", "H100 8卡 100万token 多少钱",
        "qwen2.5 7b 24GB", "is 300-800 enough?", "seq 4096-8192 on RTX 6000", "训练 5万条 数据",
    ],
)  # fmt: skip
def test_other_numbers_are_no_claims_of_a_cards_price(text: str) -> None:
    asked = understand(text)
    assert asked.rents is None or "claim" not in asked.rents


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("8b lora cost on 4090 at $0.5/h, 1M samples", "cost"),
        ("cost of starcoder-15b lora finetune if 15h30m on 8xA100-80GB at 12$/h", "cost"),
        ("rent or buy 4090 at $0.3/h", "cost"),
        ("租还是买4090，买价1.6万元，利用率60%", "cost"),
        ("qlora 8b on 4090 at 2 yuan per hour, fits?", "fit"),
    ],
)
def test_a_price_of_a_run_or_of_owning_stays_one(text: str, question: str) -> None:
    asked = understand(text)
    assert asked.question == question and asked.rents is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("how much is an A100 per day in yuan", "CNY"), ("4090一天多少美元", "USD"), ("a 4090 in euros", "EUR"),
        ("price of H100", ""), ("eurostar", ""),
    ],
)  # fmt: skip
def test_the_currency_that_is_asked_for(text: str, code: str) -> None:
    assert currency_in(text) == code


@pytest.mark.parametrize("text", ["单卡日租300到800元靠谱吗", "300-800 CNY per card-day?"])
def test_a_claim_about_no_card_is_left_to_what_is_known(text: str) -> None:
    assert understand(text).rents is None
