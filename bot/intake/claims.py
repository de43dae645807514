"""What a message says that a card costs, and the currency it speaks of: "300-800 yuan a day", "4090 一万五到两万"."""

import re
from typing import Literal

from bot.intake.quantities import HAN_DIGITS
from bot.language import has_chinese
from bot.prices.claims import Claim

Per = Literal["hour", "day", "month", "buy"]

_HAN = "".join(HAN_DIGITS)
_DIGITS = r"(?<![A-Za-z0-9.])\d[\d,]*(?:\.\d+)?\s*(?:[kKwW千万](?![a-zA-Z]))?"
_NUMBER = rf"(?:{_DIGITS}|[{_HAN}]+[万千百](?:[{_HAN}][千百]?)*)"
_CURRENCIES = {
    "CNY": r"cny|rmb|yuan|人民币|元|块(?:钱)?|¥|￥", "USD": r"usd|us dollars?|dollars?|bucks|美元|美金|刀|\$",
    "EUR": r"eur|euros?|欧元|€", "GBP": r"gbp|pounds|英镑|£",
}  # fmt: skip
_CURRENCY = "|".join(f"(?P<{code}>{names})" for code, names in _CURRENCIES.items())
_MONEY = "|".join(_CURRENCIES.values())
_AMOUNT = (
    rf"(?P<before>{_MONEY})?\s*(?P<low>{_NUMBER})\s*(?:(?:{_MONEY})?\s*(?:-|–|~|—|到|至|\bto\b|\band\b)\s*"
    rf"(?:{_MONEY})?\s*(?P<high>{_NUMBER}))?\s*(?P<after>{_MONEY})?(?![A-Za-z0-9])"
)
_NAMED = re.compile(rf"(?<![a-z])(?:{_CURRENCY})(?![a-z])", re.IGNORECASE)
_PER: tuple[tuple[Per, str], ...] = (
    ("day", r"\b(?:a|per|each) day\b|/ ?d(?:ay)?\b|\bdaily\b|-day\b|天|日租|/ ?日|每日"),
    ("month", r"\b(?:a|per) month\b|/ ?month\b|\bmonthly\b|每月|月租|包月|/ ?月|一个月"),
    ("hour", r"\b(?:an|per) hour\b|/ ?h(?:our|r)?\b|\bhourly\b|小时|卡时|/ ?时"),
    ("buy", r"\bbuy\b|\bpurchase\b|\bget an?\b|买|购|入手|一张|售价|市场价"),
)
LEAST_TO_BUY = {"CNY": 1_500.0, "USD": 200.0, "EUR": 200.0, "GBP": 200.0}
"""From here on an amount without a word for its time is the price of a card, not of renting one."""


def currency_in(text: str) -> str:
    """The code of the currency that a message names; "" for none."""
    found = _NAMED.search(text)
    return next((code for code in _CURRENCIES if found[code]), "") if found else ""


def claim_in(text: str) -> tuple[Claim, str] | None:
    """What is said that a card costs, and the message without it; None where no amount of money is said."""
    if not (currency_in(text) or has_chinese(text)):
        return None  # most messages: the patterns below are compiled for the others only
    for found in re.finditer(_AMOUNT, text, re.IGNORECASE):
        per = next((name for name, words in _PER if re.search(words, text, re.IGNORECASE)), None)
        currency = _currency_of(found, per, text)
        if not currency:
            continue
        low, high = _value(found["low"]), _value(found["high"] or found["low"])
        if found["high"] and _scale(found["low"]) == 1 and low * _scale(found["high"]) <= high:
            low *= _scale(found["high"])  # "15-20k", "1.5-2万"
        per = per or ("buy" if high >= LEAST_TO_BUY[currency] else "hour")
        days = 30 if per == "month" else 1
        rest = f"{text[: found.start()]} {text[found.end() :]}"
        return Claim(min(low, high) / days, max(low, high) / days, currency, "day" if per == "month" else per), rest
    return None


def _currency_of(found: re.Match[str], per: Per | None, text: str) -> str:
    """The currency beside the amount; Chinese that counts in 万 or speaks of days means yuan."""
    named = currency_in(found[0])
    if named or not has_chinese(text):
        return named
    counts = "万" in found[0] or (found["high"] and per in ("day", "month"))
    return "CNY" if counts else ""


def _scale(text: str) -> float:
    """What a number is counted in: 1,000 of "20k", 10,000 of "2万"."""
    last = text.strip()[-1:].lower()
    return {"k": 1e3, "千": 1e3, "w": 1e4, "万": 1e4}.get(last, 1.0)


def _value(text: str) -> float:
    """The value of a number in digits or Chinese: 1.5万, 20,000, 15k, 一万五, 两万."""
    plain = text.replace(",", "").strip()
    digits = re.match(r"\d+(?:\.\d+)?", plain)
    return float(digits[0]) * _scale(plain) if digits else _han(plain)


def _han(text: str) -> float:
    """一万五千, 一万五 (五千), 两万, 三百."""
    units = {"万": 10_000.0, "千": 1_000.0, "百": 100.0}
    total, digit, unit = 0.0, 0.0, 0.0
    for letter in text:
        if letter in units:
            unit = units[letter]
            total, digit = total + (digit or 1) * unit, 0.0
        else:
            digit = float(HAN_DIGITS[letter])
    return total + digit * (unit / 10 if unit else 1)
