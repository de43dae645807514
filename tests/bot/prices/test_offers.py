from datetime import UTC, datetime

import pytest

from bot.prices.offers import CLASSES, offers_for
from bot.prices.ranking import ranked
from bot.prices.snapshot import snapshot_offers
from estimator.catalogue.gpus import all_gpus
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_the_snapshot_is_about_known_cards_and_classes() -> None:
    offers = snapshot_offers()
    assert {offer.gpu for offer in offers} <= set(all_gpus())
    assert {offer.provider_class for offer in offers} <= set(CLASSES)
    assert all(0 < offer.usd_per_gpu_hour < 100 and offer.source and offer.gpu_count >= 1 for offer in offers)


def test_a_row_with_both_prices_gives_two_offers_of_their_own_keys() -> None:
    spot = [offer for offer in snapshot_offers() if offer.spot]
    assert spot
    assert not {offer.key for offer in spot} & {offer.key for offer in snapshot_offers() if not offer.spot}


def test_prices_in_yuan_keep_what_the_source_says() -> None:
    own = [offer for offer in snapshot_offers() if offer.currency == "CNY"]
    assert all(6 < offer.native_price / offer.usd_per_gpu_hour < 7.5 for offer in own)


def test_offers_of_a_card_come_cheapest_first_and_by_kind() -> None:
    found = offers_for("H100 SXM5 80GB")
    assert [one.usd_per_gpu_hour for one in found] == sorted(one.usd_per_gpu_hour for one in found)
    assert {one.spot for one in found} == {True, False}
    assert all(not one.spot for one in offers_for("H100 SXM5 80GB", spot=False))


@pytest.mark.parametrize(
    "change", [{"as_of": ""}, {"as_of": "2026"}, {"provider_class": "index"}, {"provider_class": "lease-cn"}]
)
def test_what_has_no_day_or_no_hourly_rent_is_never_the_cheapest(change: dict[str, str]) -> None:
    assert [one.provider for one in ranked([made(0.1, provider="low", **change), made(0.5)], NOW).offers] == ["acme"]


def test_a_quarantined_price_is_not_an_offer() -> None:
    assert offers_for("RTX 4090", among=[made(quality="quarantined", reason="3x")]) == []


def test_one_provider_is_named_once() -> None:
    assert [one.usd_per_gpu_hour for one in ranked([made(0.6, region="b"), made(0.5)], NOW).offers] == [0.5]


@pytest.mark.parametrize(("region", "count"), [("europe", 1), ("eu-1", 1), ("US", 0), (None, 1)])
def test_offers_of_a_region(region: str | None, count: int) -> None:
    assert len(offers_for("RTX 4090", region=region, among=[made()])) == count
