"""What the picture shows, in which language, and what it says to who cannot see it."""

import re
import struct
from xml.etree import ElementTree

import pytest

from bot.answers.card import Picture, cards_of, fonts
from bot.answers.card.picture import Segment
from bot.answers.render import rendered
from estimator.schema import Fit
from tests.bot.answers.card.made import too_big
from tests.bot.answers.test_render import ANSWERS
from tests.conftest import GIB, made_estimate

Fonts = dict[str, str | None]


def picture(monkeypatch: pytest.MonkeyPatch, lang: str, found: Fonts, name: str = "") -> Picture | None:
    monkeypatch.setattr(fonts, "family", found.get)
    answer = ANSWERS[name] if name else too_big()
    return cards_of(rendered(answer.model_copy(update={"lang": lang})))[0].picture


def texts_of(svg: str) -> str:
    tree = ElementTree.fromstring(svg)
    return "\n".join(one.text or "" for one in tree.iter("{http://www.w3.org/2000/svg}text"))


BOTH: Fonts = {"en": "Latin", "zh": "Chinese"}


@pytest.mark.parametrize("name", ["", "open_method", "no_card", "fits"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_labels_are_in_the_readers_language(monkeypatch: pytest.MonkeyPatch, lang: str, name: str) -> None:
    found = picture(monkeypatch, lang, BOTH, name)
    assert found and ("weights" if lang == "en" else "模型权重") in texts_of(found.svg)
    assert f'font-family="{BOTH[lang]}"' in found.svg


@pytest.mark.parametrize("name", ["", "open_method", "no_card"])
def test_without_a_chinese_font_labels_are_english_and_the_alt_text_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = picture(monkeypatch, "zh", {"en": "Latin"}, name)
    assert found and found.svg.replace("·", "").isascii()
    assert "weights" in found.svg and "已分配" in found.alt


def test_without_any_font_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    assert picture(monkeypatch, "zh", {}) is None


def test_every_chinese_letter_of_a_label_is_in_every_chinese_font(monkeypatch: pytest.MonkeyPatch) -> None:
    found = picture(monkeypatch, "zh", BOTH)
    assert found
    texts_of(found.svg).replace("·", "").replace("–", "-").encode("gb2312")


def test_the_alt_text_has_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    found = picture(monkeypatch, "en", BOTH)
    assert found
    for figure in ("1.90 GiB", "2.4-2.9 GiB", "1.5 GiB usable", "weights 0.92", "loading 1.00", "backward 1.90"):
        assert figure in found.alt


def test_the_stretches_of_a_bar_add_up_to_what_the_card_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    from bot.answers.card.picture import EDGE, WIDTH, axis, bar
    from bot.answers.card.voice import Voice

    voice = Voice(too_big())
    end = axis(voice.answer.estimates)
    one = bar(voice, 0, end)
    scale = (WIDTH - 2 * EDGE) / end
    assert sum(part.width for part in one.segments) == pytest.approx(2.6 * GIB * scale, abs=0.01)
    assert one.usable == pytest.approx(EDGE + 1.5 * GIB * scale, abs=0.01)
    assert one.over and one.low < one.end < one.high < WIDTH - EDGE


def test_words_of_users_cannot_leave_their_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "family", BOTH.get)
    runs = [{"model": '"/><script>&amp;'}, {"model": "七b\u202e😀"}]
    answer = rendered(too_big(runs=runs, estimates=[made_estimate(run=None), made_estimate(run=None, fit=Fit())]))
    found = cards_of(answer)[0].picture
    assert found and "<script" not in found.svg
    assert not re.search("[七😀\u202e]", texts_of(found.svg))


@pytest.mark.skipif(fonts.family("en") is None, reason="this machine has no font")
def test_the_picture_is_a_png_twice_as_wide_as_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    (card,) = cards_of(rendered(too_big()))
    assert card.picture and card.picture.png.startswith(b"\x89PNG")
    assert struct.unpack(">I", card.picture.png[16:20]) == (800,)
    assert len(card.picture.png) < 200_000


@pytest.mark.parametrize(("line", "place"), [(None, 50.0), (5.0, 50.0), (60.0, 30.0), (40.0, 70.0), (500.0, 50.0)])
def test_a_figure_stands_beside_the_line_that_cuts_its_stretch(line: float | None, place: float) -> None:
    assert Segment("weights", 1, "#000", 0.0, 100.0).middle(line, 44) == place


def test_a_stretch_without_room_has_no_figure() -> None:
    assert Segment("weights", 1, "#000", 0.0, 30.0).middle(None, 44) is None
    assert Segment("weights", 1, "#000", 0.0, 60.0).middle(30.0, 44) is None
