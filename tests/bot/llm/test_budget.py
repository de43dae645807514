"""A day's tokens and money."""

from datetime import date
from decimal import Decimal

from bot.llm.budget import Budget
from bot.settings import Settings


def test_tokens_run_out_and_come_back_the_next_day() -> None:
    days = [date(2026, 1, 1)]
    budget = Budget(100, None, None, today=lambda: days[0])
    budget.spend(60, 40, None)
    assert not budget.left
    days[0] = date(2026, 1, 2)
    assert budget.left


def test_money_is_counted_by_the_price_that_is_set() -> None:
    budget = Budget(10**9, Decimal("0.01"), (Decimal(1), Decimal(4)))
    budget.spend(1_000, 1_000, None)
    assert budget.left
    budget.spend(1_000, 1_000, None)
    assert not budget.left


def test_a_cap_on_money_without_a_price_stops_after_the_first_question() -> None:
    budget = Budget(10**9, Decimal(5), None)
    budget.spend(0, 0, None)
    assert budget.left
    budget.spend(10, 10, None)
    assert not budget.left


def test_the_settings_are_taken() -> None:
    found = Budget.of(
        Settings(vram_bot_llm_daily_usd=2, vram_bot_llm_daily_tokens=7, vram_bot_llm_usd_per_million="0.5/2")
    )
    assert (found.most_tokens, found.most_usd, found.usd_per_million) == (7, 2, (Decimal("0.5"), Decimal(2)))
