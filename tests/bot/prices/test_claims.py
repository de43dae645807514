"""What the documents, and people, say that cards cost, against our dated figures."""

import csv
from datetime import UTC, datetime

import pytest

from bot import service
from bot.prices.claims import Claim, borne_out
from bot.prices.money import bundled_rates
from bot.prices.offers import Offer
from bot.prices.snapshot import snapshot_offers
from bot.prices.view import Wanted, gpus_meant, prices
from estimator.datafiles import read_text
from knowledge.reading import entries
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
IN_YUAN = bundled_rates().rate("CNY")


def test_spans_lie_within_below_or_above() -> None:
    claim = Claim(300, 800, "CNY", "day")
    found = borne_out(claim, [(0, 100, 299), (1, 100, 300), (2, 400, 500), (3, 800, 900), (4, 801, 900)])
    assert (found.less, found.within, found.more) == ((0,), (1, 2, 3), (4,))


def test_rents_are_compared_by_class_and_by_the_day_and_spot_is_left_out() -> None:
    among = [
        made(1.0), made(3.0, provider_class="neocloud"), made(9.0, provider_class="hyperscaler"),
        made(2.0, spot=True), made(2.0, provider_class="index"),
    ]  # fmt: skip
    wanted = Wanted(("RTX 4090",), currency="USD", claim=Claim(60, 80, "USD", "day"))
    (card,) = prices(wanted, among, NOW).cards
    named = [one.provider_class for one in card.ranges]
    assert card.borne is not None
    sides = (card.borne.less, card.borne.within, card.borne.more)
    assert [[named[number] for number in side] for side in sides] == [["marketplace"], ["neocloud"], ["hyperscaler"]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("is a 4090 still 15-20k CNY?", "¥15,000–20,000 to buy: in line with ¥20,823 in US shops (2025-08-24)."),
        ("4090一张15000到20000块对吗", "¥15,000–20,000 买一张：与美国零售价 ¥20,823（2025-08-24）相符。"),
        ("can an L40S be had for 20k yuan?", "¥20,000 to buy: too low, it cost ¥64,865 in US shops (2025-08-24)."),
        ("L40S 两万以内能买到吗", "¥20,000 买一张：偏低，美国零售价 ¥64,865（2025-08-24）。"),
        ("is 300-800 yuan a day right for an H100?", "more at big clouds (¥1,099–3,366/day, 2026-06-18"),
        ("H100一天500块贵吗", "GPU 云（¥291–685/天，日期不明）"),
        ("A100 SXM 80GB 一天300到800元对吗", "国内整机月租（¥104/天，2026-08-22）更便宜"),
        ("H100 for $1 an hour?", "$1.00 an hour: more at big clouds"),
    ],
)
def test_claims_are_answered_with_dated_figures_in_the_claims_own_currency(text: str, shown: str) -> None:
    answer = service.ask(text)
    plain = "".join(answer.text.split())
    assert answer.question == "price" and "".join(shown.split()) in plain
    assert answer.prices.claim is not None


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("单卡日租300到800元靠谱吗", "claim_prices"),
        ("项目超过一个月就该买卡吗", "claim_hidden_costs"),
        ("month-long projects favour buying, right?", "claim_hidden_costs"),
        ("长期训练是不是自己买卡更划算", "claim_hidden_costs"),
        ("is it cheaper to buy GPUs if my project runs for more than a month?", "claim_hidden_costs"),
    ],
)  # fmt: skip
def test_claims_about_no_card_in_particular_are_answered_by_their_entry(text: str, entry: str) -> None:
    answer = service.ask(text)
    assert answer.entries == [entry]
    assert ("685" if entry == "claim_prices" else "2.95") in answer.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cards rent for 400 to 700 yuan per day, right?", "RTX 3090, ¥400–700 a day: less at marketplaces ("),
        ("renting a GPU is 400-700 CNY a day, is that so?", "MI300X, ¥400–700 a day: more at big clouds ("),
        ("云端租卡每小时 1 到 3 美元对吗", "RTX 3090，每小时 $1.00–3.00：算力市场（"),
    ],
)
def test_what_renting_any_card_is_said_to_cost_is_held_against_each(text: str, shown: str) -> None:
    answer = service.ask(text)
    assert answer.question == "price" and shown in answer.text
    assert answer.prices.claim is not None and len(answer.prices.cards) > 3


@pytest.mark.parametrize("text", ["how much does it cost to rent a gpu per day in yuan?", "租显卡一天多少钱"])
def test_asking_what_renting_costs_says_no_price(text: str) -> None:
    assert service.ask(text).prices.claim is None


def a_day(offers: list[Offer]) -> tuple[int, int]:
    """Lowest and highest of some offers on demand, in yuan a day."""
    each = [one.usd_per_gpu_hour * 24 * IN_YUAN for one in offers if not one.spot and one.quality != "quarantined"]
    return round(min(each)), round(max(each))


def of(start: str, *classes: str) -> list[Offer]:
    return [one for one in snapshot_offers() if one.gpu.startswith(start) and one.provider_class in classes]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_entrys_figures_are_those_of_the_snapshot(lang: str) -> None:
    text = entries()["claim_prices"].body(lang).text.replace(",", "")
    spans = [
        a_day(of("H100 SXM", "neocloud")), a_day(of("H100 SXM", "hyperscaler")),
        a_day(of("A100", "hyperscaler", "hyperscaler-cn")), a_day(of("A100", "neocloud", "marketplace")),
        a_day(of("A100", "marketplace-cn", "lease-cn")),
    ]  # fmt: skip
    assert all(f"{low} to {high}" in text or f"{low}~{high}" in text for low, high in spans), spans
    assert f"{IN_YUAN:.4f}" in text and bundled_rates().as_of in text
    bought = {row["name"]: row["street_usd"] for row in csv.DictReader(read_text("gpus.csv").splitlines())}
    assert 0.9 * 20_000 < float(bought["RTX 4090"]) * IN_YUAN < 1.1 * 20_000
    assert 55_000 < float(bought["L40S"]) * IN_YUAN < 75_000


def test_the_months_of_the_entry_are_what_owning_comes_to() -> None:
    said = {"rent_or_buy": True, "price": 2.95, "country": "us"}
    own = service.cost_of({"gpu": "H100", "economics": said}).cost
    assert own and own.rent_or_buy and own.rent_or_buy.break_even_months
    months, share = own.rent_or_buy.break_even_months, own.rent_or_buy.break_even_utilisation or 0
    for lang in ("en", "zh"):
        text = entries()["claim_hidden_costs"].body(lang).text
        assert f"{months:.0f} " in text and f"{100 * share:.0f}" in text


def test_an_old_price_is_told_with_its_day() -> None:
    old = made(0.5)._replace(as_of="2026-08-19")
    (card,) = prices(Wanted(("RTX 4090",)), [old], NOW).cards
    assert card.ranked_as_of == "2026-08-19"


def test_boards_of_one_size_are_all_told() -> None:
    offers = [made(1.0, gpu="A100 SXM4 40GB"), made(2.0, gpu="A100 PCIe 40GB"), made(3.0, gpu="A100 SXM4 80GB")]
    assert set(gpus_meant("A100 40GB", offers)) == {"A100 PCIe 40GB", "A100 SXM4 40GB"}
    assert gpus_meant("A100 SXM4 40GB", offers) == ("A100 SXM4 40GB",)
