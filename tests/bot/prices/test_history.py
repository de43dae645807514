from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.prices.history import DAY, History
from bot.prices.offers import Offer
from bot.prices.sources import Fetched
from tests.bot.prices.made import made

T0 = 1_796_000_000.0


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path / "prices.db")
    yield found
    found.close()


def said(history: History, day: float, *offers: Offer, source: str = "s", covers: frozenset[str] = frozenset()) -> None:
    history.record(source, Fetched(list(offers), len(offers), covers=covers), T0 + day * DAY)


def count(history: History, table: str = "observations") -> int:
    return int(history._database.table(table).count)


def test_a_price_is_written_down_only_when_it_changed(history: History) -> None:
    for day in range(5):
        said(history, day, made(0.5))
    said(history, 5, made(0.55))
    assert count(history, "offers") == 1
    assert count(history) == 2
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.55]


def test_nothing_new_confirms_what_is_known(history: History) -> None:
    said(history, 0, made(0.5))
    history.record("s", None, T0 + 3 * DAY)
    assert history.offers()[0].as_of == "2026-12-03"
    assert count(history) == 1


def test_on_demand_and_spot_are_offers_of_their_own(history: History) -> None:
    said(history, 0, made(0.5), made(0.2, spot=True))
    assert {one.spot: one.usd_per_gpu_hour for one in history.offers()} == {False: 0.5, True: 0.2}


def test_a_failed_source_keeps_what_it_said(history: History) -> None:
    said(history, 0, made(0.5))
    history.failed("s", "s cannot be read", T0 + DAY)
    assert len(history.offers()) == 1
    assert [(run.status, run.error, run.good_at) for run in history.runs()] == [("failed", "s cannot be read", T0)]


def test_runs_of_a_past_day_are_those_up_to_it(history: History) -> None:
    assert history.runs(T0) == []
    said(history, 0, made(0.5))
    history.failed("s", "s cannot be read", T0 + DAY)
    said(history, 2, made(0.5))
    days = (0.5, 1, 9)
    assert [[(run.status, run.good_at) for run in history.runs(T0 + day * DAY)] for day in days] == [
        [("ok", T0)], [("failed", T0)], [("ok", T0 + 2 * DAY)],
    ]  # fmt: skip


def test_an_offer_is_gone_after_two_runs_without_it_and_may_return(history: History) -> None:
    other = made(0.6, provider="other")
    said(history, 0, made(0.5), other)
    said(history, 1, other)
    assert len(history.offers()) == 2
    said(history, 2, other)
    assert [one.provider for one in history.offers()] == ["other"]
    assert [one.provider for one in history.changes(T0, T0 + 2 * DAY)[1]] == ["acme"]
    said(history, 3, made(0.5), other)
    assert len(history.offers()) == 2


def test_a_run_without_changes_is_a_second_run_without_the_offer(history: History) -> None:
    other = made(0.6, provider="other")
    said(history, 0, made(0.5), other)
    said(history, 1, other)
    history.failed("s", "down", T0 + 1.5 * DAY)
    assert len(history.offers()) == 2, "a failed run says nothing"
    history.record("s", None, T0 + 2 * DAY)
    assert [one.provider for one in history.offers()] == ["other"]


def test_a_run_without_changes_counts_only_what_it_covers(history: History) -> None:
    other = made(0.6, provider="other")
    said(history, 0, made(0.5), other)
    said(history, 1, other)
    said(history, 2, other, covers=frozenset({"other"}))
    history.record("s", None, T0 + 3 * DAY)
    assert len(history.offers()) == 2


def test_a_provider_that_the_source_did_not_speak_of_stays(history: History) -> None:
    said(history, 0, made(0.5), made(0.6, provider="other"))
    for day in (1, 2, 3):
        said(history, day, made(0.6, provider="other"), covers=frozenset({"other"}))
    assert len(history.offers()) == 2


def test_a_real_step_is_doubtful_once_and_plain_when_it_stays(history: History) -> None:
    """AWS' real step of -44 %: suspect on the first day, plain on the second."""
    big = {"gpu": "H100 SXM5 80GB", "provider_class": "hyperscaler"}
    said(history, 0, made(12.29, **big))
    said(history, 1, made(6.88, **big))
    assert [(one.usd_per_gpu_hour, one.quality) for one in history.offers()] == [(6.88, "suspect")]
    said(history, 2, made(6.88, **big))
    assert [(one.usd_per_gpu_hour, one.quality) for one in history.offers()] == [(6.88, "ok")]


def test_a_wild_move_is_held_back_until_seen_twice(history: History) -> None:
    said(history, 0, made(0.5))
    said(history, 1, made(0.13))
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.5]
    said(history, 2, made(0.13))
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.13]


def test_three_times_the_median_of_the_class_is_held_back_with_a_reason(history: History) -> None:
    three = [made(0.4 + number / 10, provider=f"p{number}") for number in range(3)]
    said(history, 0, *three, made(5.0, provider="wild"))
    assert {one.provider for one in history.offers()} == {"p0", "p1", "p2"}
    reasons = [row["reason"] for row in history._database.table("observations").rows if row["quality"] == "quarantined"]
    assert len(reasons) == 1
    assert "median of its class" in reasons[0]
    (held,) = history.held_back()
    assert (held.provider, held.usd_per_gpu_hour, held.reason) == ("wild", 5.0, reasons[0])
    said(history, 1, *three, made(0.55, provider="wild"))
    assert history.held_back() == []


def test_a_provider_is_told_by_one_source(history: History) -> None:
    said(history, 0, made(0.5), source="gpuhunt")
    said(history, 0, made(0.52), source="skypilot/acme")
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.5]
    said(history, 5, made(0.52), source="skypilot/acme")
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.52]


def test_prices_of_a_past_day(history: History) -> None:
    said(history, 0, made(0.5))
    said(history, 2, made(0.6))
    assert [one.usd_per_gpu_hour for one in history.at(T0 + DAY).values()] == [0.5]
    assert [one.usd_per_gpu_hour for one in history.at(T0 + 2 * DAY).values()] == [0.6]
    assert history.at(T0 - 1) == {}


def test_old_rows_go_but_for_the_price_that_still_holds(history: History) -> None:
    said(history, 0, made(0.5), made(0.7, provider="gone"))
    said(history, 1, made(0.55))
    said(history, 2, made(0.55))
    said(history, 500, made(0.55))
    assert history.prune(T0 + 500 * DAY) == 2
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.55]
    assert count(history) == 1


def test_two_processes_share_the_file(tmp_path: Path) -> None:
    one, two = (History(tmp_path / "prices.db") for _ in range(2))
    said(one, 0, made(0.5))
    said(two, 1, made(0.55))
    assert [found.usd_per_gpu_hour for found in one.offers()] == [0.55]
    one.close()
    two.close()


def test_a_run_is_written_whole_or_not_at_all(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    said(history, 0, made(0.5))
    bad = made(0.9, provider="bad")._replace(n_offers=object())  # type: ignore[arg-type]
    with pytest.raises(Exception, match="type"):
        said(history, 1, made(0.6), bad)
    assert [one.usd_per_gpu_hour for one in history.offers()] == [0.5]
