"""Which fonts of this machine draw a text, found by drawing: a letter that comes out as a box is none."""

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape

import resvg_py

Draw = Callable[[str], bytes]
"""SVG to PNG."""

LATIN = ("Noto Sans", "DejaVu Sans", "Liberation Sans", "Open Sans", "Arial", "Helvetica Neue", "Segoe UI")
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Droid Sans Fallback",
)  # fmt: skip
PIXELS = 800
"""Width of a picture, twice its units; Discord shows it up to 550 wide on a desk and some 270 in a hand."""
NO_LETTER = "\ufdd0"
"""Unicode promises that this is never a character, so every font draws its box for it."""
PROBES = {"en": "Ag0%·", "zh": "显载权评"}
"""Letters whose presence stands for the rest; these Chinese ones are in no Japanese or Korean font."""


def pixels(svg: str, width: int = PIXELS) -> bytes:
    """An SVG as PNG."""
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width))


@cache
def family(lang: str) -> str | None:
    """A font of this machine for the labels of a language; None where they would be boxes or nothing."""
    return first_drawing(PROBES[lang], candidates(lang))


def candidates(lang: str) -> Iterator[str]:
    """Families to try, the best first; any of the Latin ones may borrow Chinese letters from another font."""
    yield from (*CHINESE, *LATIN) if lang == "zh" else (*LATIN, *CHINESE)
    yield from _own(lang)


def as_drawn(svg: str) -> bytes:
    """An SVG as PNG in its own size."""
    return bytes(resvg_py.svg_to_bytes(svg_string=svg))


def first_drawing(letters: str, families: Iterable[str], draw: Draw = as_drawn) -> str | None:
    """The first family in which each letter comes out as a letter."""
    return next((one for one in families if _draws(letters, one, draw)), None)


def _draws(letters: str, font: str, draw: Draw) -> bool:
    nothing, box = (draw(_drawing(text, font)) for text in ("", NO_LETTER))
    drawn = [draw(_drawing(letter, font)) for letter in letters]
    return nothing not in drawn and box not in drawn and len(set(drawn)) == len(letters)


def _drawing(text: str, font: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">'
        f'<text x="4" y="30" font-size="26" font-family="{escape(font)}">{escape(text)}</text></svg>'
    )


def _own(lang: str) -> list[str]:
    """What fontconfig, where there is one, takes for a sans-serif of that language."""
    program = shutil.which("fc-match")
    if program is None:
        return []
    asked = [program, "--format", "%{family[0]}", f"sans-serif:lang={'zh-cn' if lang == 'zh' else 'en'}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 - fixed words
    return [done.stdout.strip()] if done.returncode == 0 and done.stdout.strip() else []
