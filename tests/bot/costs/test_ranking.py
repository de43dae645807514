"""Cards ranked by what the job costs among those that hold it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bot import service
from bot.answers.card import cards_of
from bot.costs.market import class_prices
from bot.costs.ranking import Ranking, ranked_cards
from bot.prices.offers import Offer
from bot.prices.snapshot import snapshot_offers
from estimator.estimate import estimate
from estimator.schema import Run
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = {"gpu": "H100 SXM5 80GB", "provider_class": "neocloud"}


def ranked(among: list[Offer] | None = None, **fields: Any) -> Ranking:
    return ranked_cards(Run.model_validate({"model": "llama3-8b", **fields}), None, among, NOW)


def test_cards_are_ranked_by_the_cost_of_the_job_and_hold_it() -> None:
    offers = ranked(method="qlora", tokens=3e7).offers
    costs = [offer.usd_total or 0 for offer in offers]
    assert costs == sorted(costs) and all(costs) and len({offer.gpu for offer in offers}) == len(offers)
    for offer in offers:
        if not offer.steps:
            run = Run.model_validate({"model": "llama3-8b", "method": "qlora", "gpu": offer.gpu})
            assert offer.gpu_count > 1 or estimate(run).fit.verdict == "fits"


def test_by_the_job_and_not_by_the_hour() -> None:
    """A quick card may be dearer by the hour and cheaper for the job."""
    offers = ranked([made(0.40), made(1.0, **H100)], method="lora", tokens=1e8).offers
    assert [offer.gpu for offer in offers] == ["H100 SXM5 80GB", "RTX 4090"]


def test_a_cheaper_card_comes_with_the_changes_that_make_it_fit() -> None:
    offers = ranked([made(0.3), made(3.0, **H100)], method="full", tokens=1e8).offers
    first = offers[0]
    assert (first.gpu, first.gpu_count, first.fits) == ("RTX 4090", 1, False)
    assert first.steps and len(first.steps_zh) == len(first.steps)
    assert all(one.fits and not one.steps for one in offers[1:])
    changed = estimate(Run(model="llama3-8b", method="full", gpu="RTX 4090"))
    assert changed.plan is not None and [step.title for step in changed.plan.chain] == first.steps


def test_without_an_amount_they_are_ranked_by_a_million_tokens() -> None:
    offers = ranked(method="lora").offers
    prices = [offer.usd_per_million_tokens or 0 for offer in offers]
    assert prices == sorted(prices) and all(prices)
    assert all(offer.usd_total is None for offer in offers)


def test_a_model_too_large_for_one_card_is_spread_over_several() -> None:
    assert any(offer.gpu_count > 1 for offer in ranked(method="full", tokens=1e8).offers)


def test_a_size_keeps_to_cards_of_that_size() -> None:
    offers = ranked_cards(Run(model="qwen2.5-7b", method="lora"), 24).offers
    assert offers and all("80GB" not in offer.gpu for offer in offers)


def test_spot_is_ranked_where_spot_is_asked_for() -> None:
    among = [made(0.5), made(0.2, spot=True)]
    assert [one.spot for one in ranked(among, method="qlora").offers] == [False]
    assert [one.spot for one in ranked(among, method="qlora", economics={"spot": True}).offers] == [True]


@pytest.mark.parametrize("day", ["", "2026"])
def test_a_price_without_a_day_is_marked_and_has_no_rank(day: str) -> None:
    found = ranked([made(0.1, as_of=day, provider="low"), made(2.0, **H100)], method="qlora", tokens=1e8)
    assert [one.gpu for one in found.offers] == ["H100 SXM5 80GB"]
    assert [(one.gpu, one.as_of) for one in found.rest] == [("RTX 4090", day)]
    alone = ranked([made(0.1, as_of=day)], method="qlora")
    assert alone.offers == [] and len(alone.rest) == 1


def test_an_old_price_is_not_cheapest_beside_todays() -> None:
    old = made(0.1, as_of="2026-11-20")
    found = ranked([old, made(2.0, **H100)], method="qlora", tokens=1e8)
    assert [one.gpu for one in found.offers] == ["H100 SXM5 80GB"] and found.as_of == ""
    assert [one.as_of for one in found.rest] == ["2026-11-20"]
    alone = ranked([old], method="qlora")
    assert [one.as_of for one in alone.offers] == ["2026-11-20"] == [alone.as_of]


def test_a_class_is_what_todays_sources_say_of_it() -> None:
    among = [made(0.1, as_of="2026-08-01", provider="old"), made(0.5), made(0.7, provider="b"), made(0.2, as_of="")]
    (found,) = class_prices("RTX 4090", False, among, NOW)
    assert (found.low, found.middle, found.high, found.cheapest.provider, found.current) == (
        0.5,
        0.6,
        0.7,
        "acme",
        True,
    )
    (older,) = class_prices("RTX 4090", False, [among[0], among[3]], NOW)
    assert (older.low, older.cheapest.provider, older.current) == (0.1, "old", False)


def test_only_the_snapshot_is_ranked_under_its_day() -> None:
    found = ranked(list(snapshot_offers()), method="qlora")
    assert found.as_of == max(one.as_of for one in found.offers)
    assert all(len(one.as_of) == 10 and not one.current for one in found.offers)
    fresh = [one._replace(as_of="2026-11-30", embedded=False) for one in snapshot_offers() if one.gpu == "RTX 4090"]
    assert ranked([*snapshot_offers(), *fresh], method="qlora").as_of == ""


@pytest.mark.parametrize(
    ("text", "heading", "undated"),
    [
        ("which gpu for qlora llama3 8b", "as of 2026-", "without a day have no rank"),
        ("qlora llama3 8b 用什么卡", "截至 2026-", "没有日期，不参与排名"),
    ],
)
def test_which_gpu_is_answered_by_cost_with_days(text: str, heading: str, undated: str) -> None:
    answer = service.ask(text)
    assert answer.question == "need_gpu"
    (found,) = answer.estimates
    assert found.cost and found.cost.offers and found.cost.not_ranked
    (card,) = cards_of(answer)
    for shown in (answer.text, "\n".join(card.sections)):
        first = next(line for line in shown.splitlines() if found.cost.offers[0].gpu in line)
        assert found.cost.offers[0].as_of in shown.split(first)[1][:200] + first
        assert shown.index(heading) < shown.index(first) < shown.index(undated)


def test_cards_compared_without_a_name_carry_class_and_day() -> None:
    answer = service.ask("lora vs qlora llama3 8b which gpu is cheapest, 10M tokens")
    rows = [line for line in answer.text.splitlines() if "RTX 4090 ·" in line]
    assert len(rows) == 2 and all("2026-08-19" in line for line in rows)
