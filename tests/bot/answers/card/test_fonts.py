"""A font is told by what it draws: letters, boxes or nothing."""

from pathlib import Path

import pytest

from bot.answers.card.fonts import PROBES, candidates, first_drawing
from tests.bot.answers.card.fonts import drawing_with, without_fonts


def test_a_font_with_the_letters_is_found(tmp_path: Path) -> None:
    draw = drawing_with(tmp_path, "Made Sans", PROBES["zh"] + PROBES["en"])
    assert first_drawing(PROBES["zh"], ["Other Sans", "Made Sans"], draw) == "Made Sans"
    assert first_drawing(PROBES["en"], ["Made Sans"], draw) == "Made Sans"


def test_a_font_that_draws_boxes_is_none(tmp_path: Path) -> None:
    draw = drawing_with(tmp_path, "Made Sans", PROBES["en"] + PROBES["zh"][:3])
    assert first_drawing(PROBES["zh"], ["Made Sans"], draw) is None
    assert first_drawing(PROBES["en"], ["Made Sans"], draw) == "Made Sans"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_fonts_nothing_is_drawn(lang: str) -> None:
    assert first_drawing(PROBES[lang], candidates(lang), without_fonts) is None


def test_chinese_letters_may_come_from_another_font(tmp_path: Path) -> None:
    from bot.answers.card import fonts

    chinese = next(name for name in fonts.CHINESE)
    draw = drawing_with(tmp_path, chinese, PROBES["zh"])
    assert first_drawing(PROBES["zh"], candidates("zh"), draw) == chinese
