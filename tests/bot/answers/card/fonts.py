"""A font made for the tests: a bar of its own width for every letter, so that no system font is needed."""

from functools import partial
from pathlib import Path

import resvg_py
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from bot.answers.card.fonts import Draw


def drawing_with(folder: Path, family: str, letters: str) -> Draw:
    """SVG to PNG with a font that has these letters, and no other font."""
    path = folder / f"{len(letters)}.ttf"
    make_font(path, family, letters)
    return partial(_drawn, font_files=[str(path)])


def without_fonts(svg: str) -> bytes:
    """SVG to PNG on a machine without any font."""
    return _drawn(svg, [])


def _drawn(svg: str, font_files: list[str]) -> bytes:
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True, font_files=font_files))


def make_font(path: Path, family: str, letters: str) -> None:
    names = [".notdef", *(f"g{number}" for number in range(len(letters)))]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(letter): name for letter, name in zip(letters, names[1:], strict=True)})
    builder.setupGlyf({name: _bar(100 + 700 * number // len(names)) for number, name in enumerate(names)})
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable(
        {"familyName": {"en": family}, "styleName": {"en": "Regular"}, "fullName": {"en": family}, "psName": family}
    )
    builder.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200)
    builder.setupPost()
    builder.save(str(path))


def _bar(width: int) -> object:
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, 700), (width, 700), (width, 0)):
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()
