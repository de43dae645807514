"""Prices as a card: the tables as text, and a picture of the first card's prices over time or by class."""

from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any

from bot.answer import Answer
from bot.answers.card import fonts
from bot.answers.card.picture import EDGE, WIDTH, label_language, picture_templates
from bot.answers.card.shape import LONGEST_ALT, Card, Picture
from bot.answers.layout import width
from bot.answers.render import rendered
from bot.prices.money import SIGNS, written
from bot.prices.view import CardPrices, PriceAnswer
from bot.texts import name_of, say

COLOURS = {
    "hyperscaler": "#ff8f4c", "neocloud": "#5b9dff", "marketplace": "#6fcf6f", "broker": "#c792ea",
    "hyperscaler-cn": "#f2c94c", "marketplace-cn": "#2bc4b4", "own": "#ff7eb6", "lease-cn": "#80848e",
    "index": "#b5bac1",
}  # fmt: skip
LEFT, TOP, HIGH = 60, 64, 132
"""Where the lines begin, in units of the drawing, and how high they go."""
ROOM = 1.08
HALF = 20
"""Columns of letters of a class with its price that half a picture's width has room for."""
MOST_TEXT = 3_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """A class in the picture: its points for a line, or the two ends of a bar."""

    name: str
    figure: str
    colour: str
    points: str = ""
    x: float = 0.0
    width: float = 0.0


def price_card(answer: Answer) -> Card:
    """The answer as a card; what does not fit is cut at a line's end."""
    found: PriceAnswer = answer.prices
    title = ", ".join(card.gpu for card in found.cards[:3]) or ", ".join(found.not_priced[:3])
    headline = say(answer.lang, "prices.card_title", gpu=title if len(found.cards) <= 3 else "")
    return Card("told", headline, sections=_blocks(rendered(answer, card=True).text), picture=price_picture(answer))


def _blocks(text: str) -> tuple[str, ...]:
    """The text for a phone: rows of tables become points of a list, and what is too long is cut at a line's end."""
    kept: list[str] = []
    room = MOST_TEXT
    for line in text.splitlines():
        shown = _point(line)
        room -= len(shown) + 1
        if room < 0:
            return ("\n".join([*kept, "…"]),)
        kept.append(shown)
    return ("\n".join(kept),)


def _point(line: str) -> str:
    """A row of a table as a point; what wraps below a row stays with it."""
    if not line.startswith("  "):
        return f"**{line}**" if line.endswith((":", "：")) else line
    cells = [cell.strip() for cell in line.strip().split("  ") if cell.strip()]
    return f"- {' · '.join(cells)}" if len(cells) > 1 else f"  {cells[0]}"


def price_picture(answer: Answer) -> Picture | None:
    """The first card's prices; None where there is none to draw, or no font."""
    found: PriceAnswer = answer.prices
    lang = label_language(answer.lang)
    card = next((one for one in found.cards if any(not row.spot for row in one.ranges)), None)
    if card is None or lang is None:
        return None
    return Picture(_alt(answer.lang, found, card), partial(_svg, lang, found, card), name="prices.png")


def _svg(lang: str, found: PriceAnswer, card: CardPrices) -> str:
    lines = _lines(lang, found, card)
    values: dict[str, Any] = {"width": WIDTH, "edge": EDGE, "left": LEFT, "top": TOP, "high": HIGH,
                              "font": fonts.family(lang)}  # fmt: skip
    if lines:
        prices = [price for line in card.history for _, price in line.points]
        days = sorted({day for line in card.history for day, _ in line.points})
        under = say(lang, "prices.picture_under", currency=found.currency)
        columns = 2 if max(width(f"{line.name} {line.figure}") for line in lines) <= HALF else 1
        axis = [_money(max(prices), found), _money(min(prices), found)]
        return (
            picture_templates()
            .get_template("price_lines.svg.j2")
            .render(title=card.gpu, under=under, lines=lines, days=days, axis=axis, columns=columns, **values)
        )
    under = say(lang, "prices.picture_ranges", currency=found.currency, days=_days(lang, card))
    return (
        picture_templates()
        .get_template("price_ranges.svg.j2")
        .render(title=card.gpu, under=under, bars=_bars(lang, found, card), **values)
    )


def _lines(lang: str, found: PriceAnswer, card: CardPrices) -> list[Drawn]:
    """A line for each class whose price is known on two days or more."""
    shown = [line for line in card.history if len(line.points) > 1]
    if not shown:
        return []
    prices = [price for line in shown for _, price in line.points]
    days = sorted({day for line in shown for day, _ in line.points})
    low, span = min(prices) / ROOM, max(prices) * ROOM - min(prices) / ROOM
    across = (WIDTH - EDGE - LEFT) / max(1, len(days) - 1)
    drawn = []
    for line in shown:
        at = [(LEFT + days.index(day) * across, TOP + HIGH * (1 - (price - low) / span)) for day, price in line.points]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        drawn.append(Drawn(_name(lang, line.provider_class), _money(line.points[-1][1], found),
                           COLOURS[line.provider_class], points))  # fmt: skip
    return drawn


def _days(lang: str, card: CardPrices) -> str:
    """The newest day of the prices on demand."""
    days = [row.last_day for row in card.ranges if not row.spot and row.provider_class != "index" and row.last_day]
    return max(days, default=say(lang, "prices.undated"))


def _bars(lang: str, found: PriceAnswer, card: CardPrices) -> list[Drawn]:
    """A bar from the lowest to the highest price of each class, on a logarithmic axis."""
    rows = [row for row in card.ranges if not row.spot and row.provider_class != "index"]
    if not rows:
        return []
    low, high = min(row.low.price for row in rows), max(row.high.price for row in rows)
    scale = (WIDTH - 2 * EDGE - 8) / max(log(high / low), 1e-9) if high > low else 0.0
    return [
        Drawn(
            _name(lang, row.provider_class), _span(found, row.low.price, row.high.price), COLOURS[row.provider_class],
            x=EDGE + scale * log(row.low.price / low), width=max(8.0, scale * log(row.high.price / row.low.price)),
        )
        for row in rows
    ]  # fmt: skip


def _alt(lang: str, found: PriceAnswer, card: CardPrices) -> str:
    """What the picture shows, with its figures."""
    parts = [
        say(lang, "prices.picture_change", name=_name(lang, line.provider_class), begin=line.points[0][0],
            first=_money(line.points[0][1], found), end=line.points[-1][0], last=_money(line.points[-1][1], found))
        for line in card.history if len(line.points) > 1
    ] or [
        f"{_name(lang, row.provider_class)} {_span(found, row.low.price, row.high.price)}"
        for row in card.ranges if not row.spot and row.provider_class != "index"
    ]  # fmt: skip
    joined = name_of(lang, "sign", "semicolon").join(parts)
    return say(lang, "prices.picture_alt", gpu=card.gpu, currency=found.currency, parts=joined)[:LONGEST_ALT]


def _name(lang: str, provider_class: str) -> str:
    return name_of(lang, "provider_class", provider_class)


def _span(found: PriceAnswer, low: float, high: float) -> str:
    end = _money(high, found).removeprefix(SIGNS.get(found.currency, ""))
    return _money(low, found) if low == high else f"{_money(low, found)}–{end}"


def _money(price: float, found: PriceAnswer) -> str:
    return written(price, found.currency)
