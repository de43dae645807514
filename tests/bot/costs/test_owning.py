"""Owning against renting: the worked clusters, every hidden line, and sums."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import service
from estimator.economics import RentOrBuy


def owned(gpu: str, **said: Any) -> RentOrBuy:
    found = service.cost_of({"gpu": gpu, "economics": {"rent_or_buy": True, **said}})
    assert found.cost and found.cost.rent_or_buy
    return found.cost.rent_or_buy


def hourly(found: RentOrBuy) -> float:
    """Without the hours lost to failures, which renting has too."""
    return sum(line.usd for line in found.lines if line.item != "retries")


@pytest.mark.parametrize(("rent", "percent"), [(1.29, 136), (1.82, 96), (2.95, 59), (6.88, 25), (14.38, 12)])
def test_the_american_server(rent: float, percent: int) -> None:
    found = owned("H100", price=rent, country="us")
    assert hourly(found) == pytest.approx(1.752, abs=0.001)
    assert round(100 * (found.break_even_utilisation or 0)) == percent


@pytest.mark.parametrize(("gpu", "rent", "cny", "percent"), [("H100", 21.6, 12.10, 56), ("RTX 4090", 2.27, 1.80, 79)])
def test_the_chinese_servers(gpu: str, rent: float, cny: float, percent: int) -> None:
    found = owned(gpu, price=rent, currency="CNY", country="cn")
    assert hourly(found) * 6.6529 == pytest.approx(cny, abs=0.006)
    assert round(100 * (found.break_even_utilisation or 0)) == percent


def test_every_hidden_line_is_told_in_both_languages() -> None:
    found = owned("RTX 4090", spare=0.2)
    items = ["amortisation", "rack", "finance", "maintenance", "electricity", "cooling", "labour", "retries", "spare"]
    assert [line.item for line in found.lines] == items
    assert all(line.why and line.why_zh for line in found.lines)
    placed = owned("RTX 4090", colocation_per_kw_month=200)
    assert {"electricity", "cooling"}.isdisjoint(line.item for line in placed.lines)
    assert any(line.item == "colocation" and "200" in line.why for line in placed.lines)


@settings(max_examples=40, deadline=None)
@given(
    used=st.floats(0.05, 1), years=st.floats(1, 10), pue=st.floats(1, 2), kwh=st.floats(0.01, 1),
    price=st.floats(100, 1e5), spare=st.floats(0, 1),
)  # fmt: skip
def test_lines_add_up(used: float, years: float, pue: float, kwh: float, price: float, spare: float) -> None:
    said = {"utilisation": used, "years": years, "pue": pue, "electricity_price": kwh, "purchase_price": price}
    found = owned("RTX 4090", **said, spare=spare)
    assert sum(line.usd for line in found.lines) == pytest.approx(found.usd_per_gpu_hour)
    assert all(line.usd >= 0 for line in found.lines)


def test_less_use_makes_an_hour_dearer_and_pays_back_later() -> None:
    busy, idle = owned("H100", utilisation=1.0), owned("H100", utilisation=0.5)
    assert idle.usd_per_gpu_hour == pytest.approx(2 * busy.usd_per_gpu_hour)
    assert busy.break_even_utilisation == idle.break_even_utilisation
    assert busy.break_even_months and (
        idle.break_even_months is None or idle.break_even_months > busy.break_even_months
    )


def test_a_card_without_a_purchase_price_says_so() -> None:
    found = service.cost_of({"gpu": "MI355X", "economics": {"rent_or_buy": True}})
    assert found.cost and found.cost.rent_or_buy is None and "purchase price" in found.cost.why
    assert owned("MI355X", purchase_price=25_000).invested_usd_per_gpu > 25_000
