"""Questions of time and money in both languages, the line on every answer, and the command."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import service
from bot.answer import Answer
from bot.answers.card import cards_of
from bot.answers.money.figures import adding_up
from bot.intake.typed_costs import comparison_question, cost_question
from bot.intake.understand import understand
from tests.bot.cli.runner import run

Capture = pytest.CaptureFixture[str]


def said(text: str) -> dict[str, Any]:
    found: dict[str, Any] = understand(text).runs[0]
    return found


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("how long to train 7b lora on 10M tokens on a 4090", {"tokens": 1e7}),
        ("7b lora 训练1000万token要多久 4090", {"tokens": 1e7}),
        ("qlora 8b 2 billion tokens on H100, cost?", {"tokens": 2e9}),
        ("8b lora 1e9 tokens H100 how long", {"tokens": 1e9}),
        ("8b lora H100 3亿token 多少钱", {"tokens": 3e8}),
        ("8b lora cost on 4090 at $0.5/h, 1M samples", {"price_usd_per_hour": 0.5, "samples": 1e6}),
        ("8b lora cost on 4090 at 12 usd/day, 1M samples", {"price_usd_per_hour": 0.5}),
        ("qwen2.5-7b lora 3 epochs 5万条 A100 80G 要多少钱", {"epochs": 3.0, "samples": 50_000.0}),
        ("grpo qwen2.5 1.5b 1000 prompts H100 how long", {"samples": 1000.0}),
        ("8b lora cost, 20h on 2 x H100", {"hours": 20.0, "gpu_count": 2}),
        ("8b lora cost on 4090 at 0.5 CHF/h, 1M samples", {"economics": {"price": 0.5, "currency": "CHF"}}),
    ],
)
def test_amounts_and_prices_are_read(text: str, fields: dict[str, Any]) -> None:
    found = said(text)
    assert {name: found.get(name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "economics"),
    [
        ("4090 2.3元/卡时，qlora 8b 5000万 token 多少钱", {"price": 2.3, "currency": "CNY", "price_unit": "gpu"}),
        ("2xH100 at $2.5/gpu/hr, lora 8b 1B tokens, cost?", {"price_unit": "gpu"}),
        ("rent or buy a 4090 with 60% utilization", {"utilisation": 0.6, "rent_or_buy": True}),
        ("租还是买4090，利用率60%，电价0.6元/度", {"utilisation": 0.6, "electricity_price": 0.6, "currency": "CNY"}),
        ("rent or buy H100, pue 1.2, over 5 years", {"pue": 1.2, "years": 5.0}),
        ("买4090划算还是租划算 买价1.6万元", {"purchase_price": 16_000.0, "rent_or_buy": True}),
        ("8b lora on H100 3000 tokens/s 1e9 tokens how long", {"tokens_per_second": 3000.0}),
        ("8b lora 1B tokens on H100, mfu 30%, how long", {"mfu": 0.3}),
        ("租还是买8卡H100，国内", {"country": "cn", "rent_or_buy": True}),
    ],
)
def test_what_is_said_of_money_is_read(text: str, economics: dict[str, Any]) -> None:
    found = said(text).get("economics") or {}
    assert {name: found.get(name) for name in economics} == economics


@pytest.mark.parametrize(
    "text",
    [
        "qwen2.5 7b 1M tokens context on H100, fits?",
        "vllm qwen2.5 7b --gpu-memory-utilization 0.85 on a 4090",
        "7b lora seq 4096 4090D",
    ],
)
def test_lengths_and_flags_stay_what_they_were(text: str) -> None:
    found = said(text)
    assert "tokens" not in found and "economics" not in found


@pytest.mark.parametrize(
    "text", ["7b lora on a 4090, how long?", "7b lora on a 4090 3 epochs cost?", "一张4090训练7b lora要花多少钱"]
)
def test_a_missing_amount_is_asked_in_one_question(text: str) -> None:
    answer = service.ask(text)
    assert answer.reply == "clarify" and answer.missing == ["samples"]
    assert len(answer.text.splitlines()) == 1


def test_renting_or_buying_without_a_card_and_model_asks_for_the_card() -> None:
    answer = service.ask("租还是买显卡划算")
    assert answer.reply in ("clarify", "answer") and answer.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("should I rent or buy a 4090?", ("Owning", "cooling", "break", "2026-08-19")),
        ("租还是买4090划算", ("自购", "折旧", "运维", "持平利用率", "2026-08-19")),
    ],
)
def test_rent_or_buy_tells_every_line_in_the_language(text: str, words: tuple[str, ...]) -> None:
    answer = service.ask(text)
    assert answer.question == "cost" and answer.reply == "answer"
    assert all(word in answer.text for word in words if word != "break")


@pytest.mark.parametrize(
    ("text", "price", "mark"),
    [
        ("llama3 8b lora on a 4090, 10M tokens, cost?", "USD", "sourced"),
        ("4090 lora llama3 8b，1000万token，要花多少钱", "元", "有出处"),
    ],
)
def test_a_cost_answer_shows_assumptions_class_and_source(text: str, price: str, mark: str) -> None:
    answer = service.ask(text)
    assert price in answer.text and mark in answer.text
    assert any(figure.source.endswith("cost.usd.expected") for figure in answer.numbers)
    total = next(one.value for one in answer.numbers if one.source.endswith("cost.usd.expected") and one.unit == "USD")
    assert answer.estimates[0].cost and answer.estimates[0].cost.usd
    assert total == pytest.approx(answer.estimates[0].cost.usd.expected, abs=0.01)


def written(answer: Answer, part: str) -> tuple[list[float], float]:
    """The figures of a table as they are written, and its total."""
    each = [one.value for one in answer.numbers if f".{part}lines[" in one.source and one.source.endswith("].usd")]
    whole = "usd.expected" if not part.endswith("buy.") else "rent_or_buy.usd_per_gpu_hour"
    return each, [one.value for one in answer.numbers if one.source.endswith(whole)][-1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("llama3 8b lora on a 4090, 10M tokens, cost?", "cost."),
        ("lora llama3 8b 8xH100 2B tokens 多少钱", "cost."),
        ("rent or buy a 4090", "rent_or_buy."),
        ("租还是买8卡H100，国内，利用率50%", "rent_or_buy."),
    ],
)
def test_what_is_written_adds_up_to_the_last_digit(text: str, part: str) -> None:
    each, whole = written(service.ask(text), part)
    assert len(each) >= 5
    assert sum(Decimal(str(one)) for one in each) == Decimal(str(whole))


@given(st.lists(st.floats(0, 5_000), min_size=1, max_size=12), st.integers(0, 3))
def test_rounded_figures_add_up_and_none_is_off_by_a_digit(values: list[float], digits: int) -> None:
    shown = [Decimal(one.replace(",", "")) for one in adding_up(values, sum(values), digits)]
    assert sum(shown) == Decimal(f"{sum(values):.{digits}f}")
    unit = 10.0**-digits
    assert all(abs(float(one) - value) < unit * (1 + 1e-6) for one, value in zip(shown, values, strict=True))


@pytest.mark.parametrize(("text", "words"), [("qlora 7b on a 4090", "Rent:"), ("一张4090能qlora 7b吗", "租用：")])
def test_every_answer_with_a_priced_card_has_its_rent_with_day_and_source(text: str, words: str) -> None:
    answer = service.ask(text)
    assert words in answer.text and "2026-08-19" in answer.text and "compute-market-report" in answer.text
    (card,) = cards_of(answer)
    shown = "\n".join(card.below)
    assert words in shown and "2026-08-19" in shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("7b on a 4090", {"Rent:": 1}),
        ("lora 7b on 3090 or 4090", {"Rent, RTX 3090:": 1, "Rent, RTX 4090:": 1}),
        ("7b 在3090、4090和A100上能lora吗", {"租用 RTX 3090": 1, "租用 RTX 4090": 1, "租用 A100": 1}),
    ],
)
def test_several_runs_have_the_rent_of_each_of_their_cards(text: str, lines: dict[str, int]) -> None:
    answer = service.ask(text)
    (card,) = cards_of(answer)
    for shown in (answer.text, "\n".join(card.below)):
        assert {words: shown.count(words) for words in lines} == lines
        assert "compute-market-report" in shown and ("undated" in shown or "无日期" in shown)
    assert card.length < 3_900


def test_a_card_without_offers_has_no_rent_line() -> None:
    assert "Rent:" not in service.ask("qlora 7b on a 24GB card").text


@pytest.mark.parametrize(
    "text",
    [
        "cost of 7b lora 1M samples at -2$/h on 4090", "rent or buy 4090 at 0% utilization",
        "cost of lora 7b on 4090 for -3 hours", "lora 7b 4090 跑 0 小时多少钱",
        "lora 7b 1M samples 4090 at 5 XYZ/h cost",
    ],
)  # fmt: skip
def test_impossible_values_get_one_sentence(text: str) -> None:
    answer = service.ask(text)
    assert answer.reply == "clarify" and answer.invalid and len(answer.text.splitlines()) == 1


def test_hours_and_a_price_in_words_are_multiplied() -> None:
    answer = service.ask("cost of starcoder-15b lora finetune if 15h30m on 8xA100-80GB at 12$/h")
    assert answer.estimates[0].cost and answer.estimates[0].cost.usd
    assert answer.estimates[0].cost.usd.expected == pytest.approx(186)
    assert "186.00" in answer.text


def test_options_of_the_commands_make_their_questions() -> None:
    asked = cost_question({"model": "llama3-8b", "method": "lora", "gpu": "4090", "tokens": "10M", "price": 0.4})
    assert asked.reply == "answer" and asked.runs[0]["tokens"] == 1e7
    assert asked.runs[0]["economics"] == {"price": 0.4, "price_unit": "gpu"}
    assert cost_question({"model": "7b", "method": "lora"}).missing == ["samples"]
    assert cost_question({"gpu": "H100", "buy": True}).reply == "answer"
    assert "model" in cost_question({}).missing
    assert cost_question({"model": "7b", "tokens": "many"}).doubts[0].value == "many"
    several = comparison_question({"model": "7b", "cards": "4090, 2xA100 80GB、H100", "methods": "lora, qlora"})
    assert len(several.runs) == 6 and several.runs[2]["gpu_count"] == 2


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_comparison_names_the_class_of_each_price(lang: str) -> None:
    asked = comparison_question({"model": "llama3-8b", "cards": "4090, H100", "methods": "lora", "tokens": "10M"})
    answer = service.answered(asked, lang)
    rows = [line for line in answer.text.splitlines() if "RTX 4090" in line or "H100" in line]
    assert len(rows) == 2 and rows[0].split("·")[-1] != rows[1].split("·")[-1]
    (card,) = cards_of(answer)
    assert card.length < 3_900 and len(card.actions) == 2


def test_the_command_prints_a_bill_and_json(capsys: Capture) -> None:
    flags = ("cost", "--model", "llama3-8b", "--method", "lora", "--gpu", "H100", "--gpu_count", "2", "--tokens", "1e8")
    text = run(capsys, *flags, "--lang", "en", "--price", "3")
    assert text.status == 0 and "your price" in text.out and "compute" in text.out
    found = json.loads(run(capsys, *flags, "--json").out)
    assert set(found["time"]["seconds"]) == {"low", "expected", "high"}
    assert {"tokens_per_second", "flops_per_token", "mfu", "basis"} <= set(found["time"])
    keys = {"gpu", "provider_class", "provider", "usd_per_gpu_hour", "as_of", "source", "usd_total", "fits"}
    assert keys <= set(found["cost"]["offers"][0])
    assert found["cost"]["rent_or_buy"] is None


def test_the_command_ranks_cards_and_lists_one_cards_prices(capsys: Capture) -> None:
    ranked = run(capsys, "cost", "--model", "7b", "--method", "qlora", "--tokens", "1e7", "--lang", "zh")
    assert ranked.status == 0 and "放得下的显卡" in ranked.out
    alone = run(capsys, "cost", "--gpu", "4090", "--rent-or-buy", "true", "--lang", "en")
    assert alone.status == 0 and "Owning RTX 4090" in alone.out


@pytest.mark.parametrize(
    "flags",
    [
        ("--utilisation", "0"), ("--hours", "-3"), ("--price", "2", "--currency", "XYZ"), ("--currency", "XYZ"),
        ("--pue", "0.8"), ("--tokens", "-5"), ("--country", "atlantis"),
    ],
)  # fmt: skip
def test_wrong_flags_get_one_sentence(capsys: Capture, flags: tuple[str, ...]) -> None:
    done = run(capsys, "cost", "--model", "7b", "--gpu", "4090", *flags)
    assert done.status == 2 and done.out == "" and len(done.err.strip().splitlines()) == 1
