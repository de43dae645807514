"""The price picture: every text within its edges, days on it, figures for who cannot see it."""

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from bot.answer import Answer
from bot.answers.card import cards_of, fonts
from bot.answers.card.picture import EDGE, WIDTH
from bot.answers.card.prices import LEFT, price_picture
from bot.answers.layout import width
from bot.answers.render import rendered
from bot.prices.offers import CLASSES
from bot.prices.snapshot import snapshot_offers
from bot.prices.view import Wanted, prices
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
WIDEST = 0.62
"""Widths of a letter, in its size, of a wide font (DejaVu Sans), bold ones included."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def any_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "family", {"en": "Latin", "zh": "Chinese"}.get)


def answer(lang: str, gpu: str, lows: dict[str, list[tuple[str, float]]] | None = None) -> Answer:
    wanted = Wanted((gpu,), currency="CNY" if lang == "zh" else "USD")
    found = prices(wanted, snapshot_offers(), NOW, lows={gpu: lows or {}})
    return Answer(lang=lang, question="price", prices=found)


def boxes(svg: str) -> list[tuple[float, float, float, str]]:
    """Of every text its left and right edge, its line, and the words."""
    found = []
    for one in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        words = one.text or ""
        wide = width(words) * float(one.get("font-size", 14.5)) * WIDEST
        x = float(one.get("x", 0)) - (wide if one.get("text-anchor") == "end" else 0)
        found.append((x, x + wide, float(one.get("y", 0)), words))
    return found


def assert_readable(svg: str) -> None:
    """No text leaves the picture or runs into another."""
    listed = boxes(svg)
    for left, right, _, words in listed:
        assert left >= 0 and right <= WIDTH, words
    for at, (left, right, y, words) in enumerate(listed):
        for other_left, other_right, other_y, others in listed[at + 1 :]:
            assert y != other_y or right <= other_left or other_right <= left, (words, others)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_ranges_of_every_card_are_readable_and_say_up_to_when(lang: str) -> None:
    for gpu in dict.fromkeys(one.gpu for one in snapshot_offers()):
        found = price_picture(answer(lang, gpu))
        if found is None:
            continue
        assert_readable(found.svg)
        under = boxes(found.svg)[1][3]
        assert "202" in under or "no date" in under or "日期不明" in under
        assert found.alt and gpu in found.alt


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lines_of_all_classes_are_readable(lang: str) -> None:
    days = [f"2026-11-{day:02}" for day in range(1, 31)]
    lows = {name: [(day, 0.4 + number) for day in days] for number, name in enumerate(CLASSES) if name != "index"}
    found = price_picture(answer(lang, "RTX PRO 6000 Blackwell Server", lows))
    assert found is not None
    assert_readable(found.svg)
    assert {days[0], days[-1]} <= {words for *_, words in boxes(found.svg)}
    assert days[0] in found.alt and days[-1] in found.alt
    (points, *_) = [one.get("points") or "" for one in ElementTree.fromstring(found.svg).iter(f"{SVG}polyline")]
    across = [float(point.split(",")[0]) for point in points.split()]
    assert across[0] == LEFT and across[-1] == pytest.approx(WIDTH - EDGE, abs=0.1) and len(across) == 30


def test_without_a_price_on_demand_or_a_font_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    spot = prices(Wanted(("RTX 4090",)), [made(0.3, spot=True)], NOW)
    assert price_picture(Answer(question="price", prices=spot)) is None
    monkeypatch.setattr(fonts, "family", {}.get)
    assert price_picture(answer("en", "RTX 4090")) is None


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_card_has_points_in_place_of_tables(lang: str) -> None:
    (card,) = cards_of(rendered(answer(lang, "H100 SXM5 80GB")))
    lines = "\n".join(card.sections).splitlines()
    assert not any(line.startswith("  ") and "  " in line.strip() for line in lines)
    assert sum(line.startswith("- ") for line in lines) >= 8
    assert any("2026-09-06" in line for line in lines)
