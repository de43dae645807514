"""Stretches of time and money in a message, read so that "30m" is no model and "12$/h" no count."""

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
SIGNS = frozenset("$¥￥")
RATES = frozenset({"h", "hr", "hour", "小"})


def read_amounts(sheet: Sheet) -> None:
    """Hours and hourly prices."""
    for index in sheet.free_starts():
        _read_price(sheet, index) or _read_hours(sheet, index)


def _read_hours(sheet: Sheet, start: int) -> bool:
    number = quantities.signed(sheet.tokens, start)
    unit = sheet.tokens[number.end].text if number and number.end < len(sheet.tokens) else ""
    if number is None or unit not in HOURS or not sheet.is_free(start, number.end + 1):
        return False
    if card_named(sheet.words(start, number.end + 1)):  # 4090D
        return False
    hours, end = number.value * HOURS[unit], number.end + 1
    end += end < len(sheet.tokens) and sheet.tokens[end].text == "时"
    rest = quantities.signed(sheet.tokens, end)
    if rest and rest.end < len(sheet.tokens) and sheet.tokens[rest.end].text in MINUTES:
        hours, end = hours + rest.value / 60, rest.end + 1
    elif rest and sheet.tokens[end].glued:
        return False
    sheet.read("hours", hours, start, end, "a stretch of time")
    return True


def _read_price(sheet: Sheet, start: int) -> bool:
    """``12$/h``, ``$12/h``, ``12 usd/hr``."""
    tokens = sheet.tokens
    at = start + (tokens[start].text in SIGNS)
    number = quantities.signed(tokens, at)
    if number is None:
        return False
    end = number.end + (number.end < len(tokens) and tokens[number.end].text in SIGNS | {"usd", "dollars"})
    if end + 1 >= len(tokens) or (end == number.end and at == start):
        return False
    if tokens[end].text not in ("/", "per") or tokens[end + 1].text not in RATES:
        return False
    sheet.read("price_usd_per_hour", number.value, start, end + 2, "money per hour")
    return True
