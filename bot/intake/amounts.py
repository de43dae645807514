"""Stretches of time in a message, read so that "30m" is no model."""

from bot.intake import quantities
from bot.intake.names import card_named
from bot.intake.sheet import Sheet

HOURS = {
    "h": 1.0,
    "hr": 1.0,
    "hrs": 1.0,
    "hour": 1.0,
    "hours": 1.0,
    "小": 1.0,
    "d": 24.0,
    "day": 24.0,
    "days": 24.0,
    "天": 24.0,
}
MINUTES = frozenset({"m", "min", "mins", "minutes", "分"})
LONGER = {"week": 168.0, "weeks": 168.0, "周": 168.0, "month": 730.0, "months": 730.0, "月": 730.0}
WITH_DIMENSIONS = frozenset({"parallel", "parallelism", "并", "混"})
ONE = frozenset({"a", "one", "一"})
MOST_MONTHS = 120
"""Beyond, the number before the word is something else: "4090 月租"."""


def read_amounts(sheet: Sheet) -> None:
    """Hours, days, weeks and months."""
    for index in sheet.free_starts():
        _read_hours(sheet, index) or _read_months(sheet, index)


def _read_hours(sheet: Sheet, start: int) -> bool:
    number = quantities.signed(sheet.tokens, start)
    unit = sheet.tokens[number.end].text if number and number.end < len(sheet.tokens) else ""
    if number is None or unit not in HOURS or not sheet.is_free(start, number.end + 1):
        return False
    if start and sheet.tokens[start].glued and sheet.tokens[start - 1].kind == "word":  # p4d.24xlarge
        return False
    behind = sheet.tokens[number.end + 1].text if number.end + 1 < len(sheet.tokens) else ""
    if card_named(sheet.words(start, number.end + 1)) or behind in WITH_DIMENSIONS:  # 4090D, 3D parallel
        return False
    hours, end = number.value * HOURS[unit], number.end + 1
    end += end < len(sheet.tokens) and sheet.tokens[end].text == "时"
    rest = quantities.signed(sheet.tokens, end)
    if rest and rest.end < len(sheet.tokens) and sheet.tokens[rest.end].text in MINUTES:
        hours, end = hours + rest.value / 60, rest.end + 1
    elif rest and sheet.tokens[end].glued:
        return False
    if hours <= 0:
        sheet.invalid.append("hours")
        sheet.take(start, end)
    else:
        sheet.read("hours", hours, start, end, "a stretch of time")
    return True


def _read_months(sheet: Sheet, start: int) -> bool:
    """``2 weeks``, ``a month``, ``三个月``."""
    tokens = sheet.tokens
    number = quantities.small_count(tokens, start)
    if number is None and tokens[start].text in ONE:
        number = quantities.Quantity(1.0, start + 1)
    if number is None or not 0 < number.value <= MOST_MONTHS:
        return False
    at = number.end + (number.end < len(tokens) and tokens[number.end].text == "个")
    if at >= len(tokens) or tokens[at].text not in LONGER or not sheet.is_free(start, at + 1):
        return False
    sheet.read("hours", number.value * LONGER[tokens[at].text], start, at + 1, "a stretch of time")
    return True
