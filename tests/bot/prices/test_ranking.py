"""How old a price may be to be told plainly, with its day, or as the cheapest."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.prices.ranking import age_of, is_current, lowest_undated, middle, ranges, ranked
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "age"), [(0, "fresh"), (35.9, "fresh"), (36.1, "dated"), (167.9, "dated"), (168.1, "old"), (9_000, "old")]
)
def test_ages_by_when_a_source_said_so_last(hours: float, age: str) -> None:
    seen = NOW - timedelta(hours=hours)
    offer = made(0.5, as_of=seen.date().isoformat(), seen_at=seen)
    assert age_of(offer, NOW) == age
    assert is_current(offer, NOW) == (age in ("fresh", "dated"))


def test_ages_of_days_of_nothing_and_of_contracts() -> None:
    assert age_of(made(0.5, as_of="2026-11-29"), NOW) == "fresh", "a day counts to its end"
    assert age_of(made(0.5, as_of="2026-11-24"), NOW) == "dated"
    assert age_of(made(0.5, as_of="2026-11-22"), NOW) == "old"
    assert age_of(made(0.5, as_of=""), NOW) == age_of(made(0.5, as_of="2026"), NOW) == "undated"
    assert age_of(made(0.5, as_of="2026-01-01", valid_until="2026-11-30"), NOW) == "fresh"
    assert age_of(made(0.5, as_of="2026-01-01", valid_until="2026-11-29"), NOW) == "old"
    assert not is_current(made(0.5, as_of="2026-11-30", embedded=True), NOW)


def test_old_prices_are_ranked_only_where_there_is_nothing_newer_and_then_it_says_so() -> None:
    old, new = made(0.1, provider="old", as_of="2026-08-19"), made(0.5, provider="new", as_of="2026-11-29")
    undated = made(0.05, provider="undated", as_of="")
    found = ranked([undated, old, new], NOW)
    assert ([one.provider for one in found.offers], found.as_of) == (["new"], "")
    alone = ranked([undated, old, made(0.2, provider="older", as_of="2026-07-01")], NOW)
    assert ([one.provider for one in alone.offers], alone.as_of) == (["old", "older"], "2026-08-19")
    assert ranked([undated], NOW).offers == []
    assert lowest_undated([undated, new], 0.5) is undated and lowest_undated([undated], 0.05) is None


def test_what_is_held_back_or_cannot_be_rented_by_the_hour_is_never_ranked() -> None:
    others = [made(0.1, provider_class=name) for name in ("index", "lease-cn")]
    assert ranked([*others, made(0.1, quality="quarantined")], NOW).offers == []


def test_a_provider_is_ranked_once_and_five_at_most() -> None:
    zones = [made(0.5, provider="a", region=f"z{number}", region_class=f"r{number}") for number in range(9)]
    others = [made(0.6 + number / 10, provider=f"p{number}") for number in range(9)]
    assert [one.provider for one in ranked([*zones, *others], NOW).offers] == ["a", "p0", "p1", "p2", "p3"]


def test_a_median_is_of_providers_and_told_from_three_on() -> None:
    two = [made(0.5, provider="a"), made(0.9, provider="a"), made(0.7, provider="b")]
    assert ranges(two)[0].median_usd is None
    (found,) = ranges([*two, made(1.5, provider="c")])
    assert (found.median_usd, found.n_offers, found.n_providers) == (0.7, 4, 3)
    assert middle([3.0, 1.0]) == 2.0 and middle([5.0, 1.0, 2.0]) == 2.0


def test_classes_and_kinds_are_never_pooled() -> None:
    among = [made(0.5), made(0.2, spot=True), made(5.0, provider_class="hyperscaler")]
    assert [(one.provider_class, one.spot) for one in ranges(among)] == [
        ("hyperscaler", False), ("marketplace", False), ("marketplace", True),
    ]  # fmt: skip
