"""What a post says: matched offers only, quiet days in one line, every price with its day."""

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import service
from bot.answers.digest import MOST_TEXT, digest_text
from bot.digest.alerts import step
from bot.digest.content import News, post_of
from bot.digest.make import Maker
from bot.digest.movers import group_moves, moves, single_moves
from bot.digest.subscription import Alert, BadDigest, alerts_of, time_of, zones
from bot.digest.workloads import workload_cost
from bot.prices.current import FILE
from bot.prices.history import DAY, History
from bot.prices.offers import Offer
from bot.prices.snapshot import snapshot_offers
from bot.prices.sources import Fetched
from tests.bot.digest.worlds import wish
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def keyed(*offers: Offer) -> dict[tuple[object, ...], Offer]:
    return {one.key: one for one in offers}


def test_only_offers_of_both_times_are_compared() -> None:
    """A cheap provider that comes or goes is no move: the artefact of daily reports that compare medians."""
    before = keyed(made(1.0, provider="a"), made(0.2, provider="left"))
    after = keyed(made(1.0, provider="a"), made(0.1, provider="came"))
    found = moves(before, after)
    assert [move.change for move in found] == [0.0]
    assert single_moves(found) == group_moves(found) == []


def test_doubtful_prices_make_no_move() -> None:
    assert moves(keyed(made(1.0)), keyed(made(0.6, quality="suspect"))) == []


def test_a_class_moves_by_the_median_of_three_or_more() -> None:
    names = ("a", "b", "c")
    before = keyed(*(made(1.0, provider=name) for name in names))
    after = keyed(*(made(price, provider=name) for name, price in zip(names, (0.9, 0.8, 1.0), strict=True)))
    assert [(one.n_matched, round(one.change, 2)) for one in group_moves(moves(before, after))] == [(3, -0.1)]
    assert group_moves(moves(keyed(made(1.0)), keyed(made(0.5)))) == []


def test_the_first_post_tells_the_snapshot_with_its_day_and_no_moves() -> None:
    post = post_of(wish(), date(2026, 11, 30), NOW, snapshot_offers(), News())
    text = digest_text(post, "en")
    assert "embedded snapshot, the newest of 2026-09-06" in text
    assert "Moved" not in text and "Quiet" not in text
    assert len(text) <= MOST_TEXT


def test_a_quiet_day_says_so_in_one_line() -> None:
    offers = [made(0.5, seen_at=NOW)]
    news = News(before=keyed(*offers), after=keyed(*offers), since="2026-11-29")
    lines = digest_text(post_of(wish(), date(2026, 11, 30), NOW, offers, news), "en").splitlines()
    assert len(lines) == 3
    assert lines[1] == (
        "Quiet since 2026-11-29: no followed price moved by 1 % or more."
        " Cheapest per GPU and hour: RTX 4090 $0.50 marketplaces (acme, 2026-11-30)."
    )


def test_moves_new_and_gone_offers_are_told(tmp_path: Path) -> None:
    history = History(tmp_path / FILE)
    start = NOW.timestamp() - 3 * DAY
    names = ("a", "b", "c")
    history.record("s", Fetched([*(made(0.5, provider=name) for name in names), made(0.6, provider="left")], 4), start)
    later = [*(made(0.45, provider=name) for name in names), made(0.4, provider="came")]
    for days in (1, 2, 2.9):
        history.record("s", Fetched(later, 4), start + days * DAY)
    history.close()
    maker = Maker(tmp_path, NOW)
    post = maker.post(wish(), date(2026, 11, 30), ("2026-11-28", start + 0.5 * DAY))
    text = digest_text(post, "zh")
    assert "RTX 4090，算力市场：-10.0 %（3 个报价的中位数）" in text
    assert "新报价**：" in text and "came" in text
    assert "已下架**：" in text and "left" in text
    assert maker.post(wish(2), date(2026, 11, 30), ("2026-11-28", start + 0.5 * DAY)) is post


def test_workloads_are_priced_as_a_question_for_their_cost_is() -> None:
    """The price of a million tokens is that of ``cost`` on the same card at the same rent."""
    text = "qlora 8b at 4k"
    offers = [made(0.5), made(0.2, as_of="", provider="undated"), made(9.0, gpu="L4")]
    told = workload_cost(text, offers, NOW, 2.0, "en")
    first = told.cards[0]
    assert (first.gpu, first.provider, first.price, first.as_of) == ("RTX 4090", "acme", 1.0, "2026-11-30")
    run = {"model": "8b", "resolved_model": "meta-llama/Llama-3.1-8B", "method": "qlora", "seq_len": 4096}
    priced = service.cost_of({**run, "gpu": "RTX 4090", "price_usd_per_hour": 0.5}).cost
    assert priced and first.per_million == pytest.approx(2.0 * (priced.usd_per_million_tokens or 0))
    assert [card.gpu for card in told.cards] == ["RTX 4090", "L4"] and told.as_of == ""


def test_workloads_keep_to_the_followed_classes_and_say_how_old_prices_are(tmp_path: Path) -> None:
    wanted = wish(workloads=("qlora 8b at 4k",), classes=("hyperscaler",))
    post = Maker(tmp_path, NOW).post(wanted, date(2026, 11, 30), None)
    (told,) = post.workloads
    assert {card.provider_class for card in told.cards} == {"hyperscaler"}
    live = replace(post, as_of="")
    for lang, words in (("en", "(prices as of 2026-"), ("zh", "（价格截至 2026-")):
        assert words in digest_text(live, lang)
    assert "per million tokens" in digest_text(live, "en")


def test_a_workload_that_only_fits_after_changes_says_which() -> None:
    told = workload_cost("full fine-tune 7b", [made(0.5)], NOW, 1.0, "zh")
    assert told.cards[0].steps and "LoRA" in told.cards[0].steps[0]
    assert workload_cost("full fine-tune 7b", [made(0.5, as_of="")], NOW, 1.0, "zh").cards == []


def test_skipped_days_and_silent_sources_are_said() -> None:
    news = News(since="2026-11-27", skipped=("2026-11-28", "2026-11-29"), failed=3, last_good="2026-11-26")
    text = digest_text(post_of(wish(), date(2026, 11, 30), NOW, snapshot_offers(), news), "en")
    assert "Not posted on 2026-11-28, 2026-11-29: the bot was not running." in text
    assert "No price source has answered since 2026-11-26" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_longest_post_keeps_discords_limit(lang: str) -> None:
    cards = tuple(dict.fromkeys(one.gpu for one in snapshot_offers()))[:30]
    many = [one._replace(as_of="2026-11-30", embedded=False) for one in snapshot_offers()]
    post = post_of(
        wish(gpus=cards, lang=lang, currency="CNY"), date(2026, 11, 30), NOW, many, News(new=many, gone=many)
    )
    text = digest_text(post, lang)
    assert len(text) <= MOST_TEXT
    assert text.splitlines()[-1].startswith("-# ")


@given(st.lists(st.floats(1.0, 3.0), min_size=1, max_size=60))
def test_an_alert_fires_once_a_crossing(prices: list[float]) -> None:
    alert, fired, at, told = Alert("H100 SXM5 80GB", 2.0), False, 0.0, []
    for number, usd in enumerate(prices):
        now = (number + 1) * 2 * DAY
        todo = step(alert, usd, fired, at, now)
        if todo == "fire":
            fired, at = True, now
            told.append(number)
        fired = fired and todo != "arm"
    for first, second in itertools.pairwise(told):
        assert max(prices[first:second]) > 2.0 * 1.03
    assert all(prices[number] < 2.0 for number in told)


def test_an_alert_waits_a_day_and_needs_a_price() -> None:
    alert = Alert("H100 SXM5 80GB", 2.0)
    assert step(alert, 1.9, False, 1_000.0, 2_000.0) == "stay"
    assert step(alert, None, False, 0.0, 2_000.0) == "stay"
    assert step(alert, 2.05, True, 0.0, 2_000.0) == "stay"


@pytest.mark.parametrize(("typed", "at"), [("9", "09:00"), ("9:30", "09:30"), ("21：05", "21:05"), ("9点", "09:00")])
def test_times(typed: str, at: str) -> None:
    assert time_of(typed, "en") == at


def test_thresholds() -> None:
    found = alerts_of("4090 < 2, H100 spot 低于 1.5 CNY", "zh", "CNY")
    assert (found[0].gpu, found[0].spot, round(found[0].below_usd, 3)) == ("RTX 4090", False, 0.301)
    assert all(one.spot for one in found[1:]) and len(found) == 4
    for bad in ("H100", "< 2", "H100 < 0", "H100 < 2 XYZ", "nosuch < 2"):
        with pytest.raises(BadDigest):
            alerts_of(bad, "en", "USD")


def test_zones_are_found_by_city() -> None:
    assert zones("shang")[0] == "Asia/Shanghai"
    assert "America/New_York" in zones("new york")


def test_an_old_price_is_no_cheapest_beside_todays_and_stands_under_its_day_alone() -> None:
    old = made(0.1, provider="old", provider_class="broker", as_of="2026-08-19")
    post = post_of(wish(), date(2026, 11, 30), NOW, [old, made(0.5, seen_at=NOW)], News())
    assert [(one.provider, cheapest.as_of) for cheapest in post.cheapest for one in cheapest.offers] == [("acme", "")]
    other = made(9.0, gpu="H100 SXM5 80GB", seen_at=NOW)
    wanted = wish(gpus=("RTX 4090", "H100 SXM5 80GB"))
    post = post_of(wanted, date(2026, 11, 30), NOW, [old, other], News())
    assert [cheapest.as_of for cheapest in post.cheapest] == ["2026-08-19", ""]
    assert "**RTX 4090** (as of 2026-08-19) $0.10" in digest_text(post, "en")
    assert "**RTX 4090**（截至 2026-08-19）$0.10" in digest_text(post, "zh")
