"""What a message says of money and speed: prices with their currency and unit, electricity, use, amounts of tokens."""

import re
from typing import Any

from bot.intake import quantities
from bot.intake.quantities import HAN_DIGITS, Quantity
from bot.intake.sheet import Sheet
from bot.prices.money import bundled_rates

CURRENCIES = {
    "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "us$": "USD", "美元": "USD", "美金": "USD",
    "¥": "CNY", "￥": "CNY", "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "元": "CNY", "块钱": "CNY", "人民币": "CNY",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP", "gbp": "GBP",
}  # fmt: skip
HOURS_IN = {
    "h": 1, "hr": 1, "hrs": 1, "hour": 1, "hours": 1, "小时": 1, "时": 1, "d": 24, "day": 24, "days": 24,
    "天": 24, "日": 24, "month": 730, "mo": 730, "月": 730,
}  # fmt: skip
NO_CURRENCIES = frozenset({"GPU", "REQ", "TOK", "JOB", "RUN", "MIG", "RTX"})
"""Capitals that stand behind a number and are no money."""
OF_ONE = frozenset({"gpu", "gpus", "card", "cards", "卡", "张", "张卡", "each", "单卡"})
OF_ALL = frozenset({"node", "instance", "server", "machine", "台", "total", "together", "整机", "机器"})
BETWEEN = frozenset({"/", "per", "a", "an", "每", "-", "·", "一", "for", "all", "the"})
KWH = frozenset({"kwh", "度", "度电", "千瓦时"})
LARGE = {
    "k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12, "千": 1e3, "万": 1e4, "w": 1e4, "亿": 1e8, "million": 1e6,
    "billion": 1e9, "trillion": 1e12, "thousand": 1e3, "mil": 1e6,
}  # fmt: skip
TOKEN_WORDS = frozenset({"tokens", "token", "tok", "toks"})
LEAST_AMOUNT = 1_000_000
"""Fewer tokens than this are the length of a row; more are an amount of data unless called a context."""
LINKS = frozenset(
    ("=", ":", "~", "is", "of", "at", "为", "是", "约", "/", "per", "每", "一", "over", "按", "about", "rate", "price")
)
"""Small words between a name and its number."""
SPANS = frozenset({"over"})
"""Words before a span of years that stand before other things, too."""
SHARES = ("utilisation", "mfu", "buffer")
PREFIX = "economics."
LONGEST = 4
"""Words between a sum of money and its unit."""


def read_token_amounts(sheet: Sheet, least: float = LEAST_AMOUNT) -> None:
    """``10M tokens``, ``1000万 token``, ``2 billion tokens``, ``1e9 tokens``; ``3000 tokens/s`` is a speed.

    Fewer than ``least`` are left to be read as a length.
    """
    for start in sheet.free_starts():
        number = _large(sheet, start)
        if number is not None and _is_told_as_tokens(sheet, start) and number.value >= least:
            sheet.read("tokens", number.value, start - 2, number.end, "an amount of tokens")
            continue
        if number is None or number.end >= len(sheet.tokens) or not sheet.is_free(start, number.end + 1):
            continue
        at = number.end + (sheet.tokens[number.end].text in ("个", "的"))
        if at >= len(sheet.tokens) or sheet.tokens[at].text not in TOKEN_WORDS:
            continue
        end = _per_second(sheet, at + 1)
        if end:
            _note_speed(sheet, number.value, start, end)
        elif _each_second(sheet, start):
            _note_speed(sheet, number.value, start - 2, at + 1)
        elif number.value >= least and not _is_context(sheet, start, at + 1):
            sheet.read("tokens", number.value, start, at + 1, "an amount of tokens")


def _is_told_as_tokens(sheet: Sheet, start: int) -> bool:
    """Whether the number is the value of an option, ``tokens:200M``."""
    before = [token.text for token in sheet.tokens[max(0, start - 2) : start]]
    return len(before) == 2 and before[0] in TOKEN_WORDS and before[1] in ":="


def read_economics(sheet: Sheet) -> None:
    """Sums of money with what they are for, and named shares."""
    for start in sheet.free_starts():
        _read_named(sheet, start) or _read_money(sheet, start)


def _read_named(sheet: Sheet, start: int) -> bool:
    """``utilisation 60%``, ``PUE 1.3``, ``over 3 years``, ``电价 0.6``, ``买价 1.6万``; a share may stand in front."""
    word = sheet.phrase(start, "economics")
    if word is None:
        return _read_share_before(sheet, start)
    if _is_other_key(sheet, start):
        return False
    at = _skipped(sheet, word.end)
    value = _money_at(sheet, at) or _share_at(sheet, at)
    if value is None:
        return False
    amount, currency, end = value
    if sheet.tokens[start].text in SPANS and not _is_of_years(sheet, end):
        return False
    if word.value in SHARES and amount > 1:
        amount = amount / 100
    if word.value in ("electricity_price",):
        end = _past(sheet, end, KWH)
    _checked(sheet, word.value, amount, start, end)
    if currency:
        _note(sheet, "currency", currency, start, end)
    return True


def _is_other_key(sheet: Sheet, start: int) -> bool:
    """Whether the word ends the name of another number: "gpu-memory-utilization"."""
    words = (sheet.phrase(at, "key") for at in range(max(0, start - 2 * LONGEST), start))
    return any(word is not None and word.end > start for word in words)


def _is_of_years(sheet: Sheet, end: int) -> bool:
    """Whether the number that ends here counts years: "over 3 years", not "over 4 cards"."""
    return end < len(sheet.tokens) and sheet.tokens[end].text in ("year", "years", "yr", "yrs", "y", "年")


def _read_share_before(sheet: Sheet, start: int) -> bool:
    """``60% utilisation``, ``3 years``."""
    share = _share_at(sheet, start)
    if share is None or share[2] >= len(sheet.tokens):
        return False
    word = sheet.phrase(share[2], "economics")
    if word is None or word.value not in (*SHARES, "years") or sheet.tokens[share[2]].text in SPANS:
        return False  # "q4 over two cards" speaks of no years
    is_percent = sheet.tokens[share[2] - 1].text == "%"
    if word.value in SHARES and not is_percent:
        return False
    _checked(sheet, word.value, share[0], start, word.end)
    return True


LIMITS = {
    "utilisation": (1e-6, 1), "mfu": (1e-6, 1), "buffer": (0, 10), "pue": (1, 10), "years": (0.01, 50),
    "electricity_price": (0, 1e6), "purchase_price": (0.01, 1e12),
}  # fmt: skip


def _checked(sheet: Sheet, name: str, value: float, start: int, end: int) -> None:
    """Note a value, or that it is impossible."""
    low, high = LIMITS[name]
    if low <= value <= high:
        _note(sheet, name, value, start, end)
    else:
        sheet.invalid.append(name)
        sheet.take(start, end)


def _read_money(sheet: Sheet, start: int) -> bool:
    """``$2/h``, ``2.3元/卡时``, ``500 元/天``, ``0.6元/度``; money without a time is left alone."""
    found = _money_at(sheet, start)
    if found is None or not found[1]:
        return _is_of_no_currency(sheet, found[2]) if found else False
    amount, currency, end = found
    if (kwh := _past(sheet, _skipped(sheet, end), KWH)) > _skipped(sheet, end):
        _note(sheet, "electricity_price", amount, start, kwh)
        _note(sheet, "currency", currency, start, kwh)
        return True
    hours, unit, stop = _unit(sheet, end)
    if hours is None:
        before = _unit_before(sheet, start)
        if before is None:
            return False
        hours, unit, start, stop = *before, end
    if amount < 0:
        sheet.invalid.append("price_usd_per_hour")
        sheet.take(start, stop)
        return True
    _price(sheet, amount / hours, currency, unit, start, stop)
    return True


def _price(sheet: Sheet, hourly: float, currency: str, unit: str, start: int, end: int) -> None:
    if currency == "USD":
        sheet.read("price_usd_per_hour", hourly, start, end, "money per hour")
    else:
        _note(sheet, "price", hourly, start, end)
        _note(sheet, "currency", currency, start, end)
    if unit:
        _note(sheet, "price_unit", unit, start, end)


def _money_at(sheet: Sheet, start: int) -> tuple[float, str, int] | None:
    """A sum with its currency before or behind; the currency is empty where none is said."""
    tokens = sheet.tokens
    if start >= len(tokens):
        return None
    before = CURRENCIES.get(tokens[start].text, "")
    at = start + bool(before)
    minus = at < len(tokens) and tokens[at].text == "-"
    number = _large(sheet, at + minus, glued=True)
    if number is None:
        return None
    behind, end = _currency_behind(sheet, number.end)
    value = -number.value if minus else number.value
    return (value, before or behind, end) if before or behind or not minus else None


def _is_of_no_currency(sheet: Sheet, at: int) -> bool:
    """``5 XYZ/h``: a price in letters that no exchange rate is known for is said to be wrong, not left out."""
    code = _code_at(sheet, at)
    if not code or code in NO_CURRENCIES or _unit(sheet, at + 1)[0] is None:
        return False
    sheet.invalid.append("currency")
    sheet.take(at, at + 1)
    return True


def _code_at(sheet: Sheet, at: int) -> str:
    """Three capitals that may be the code of a currency."""
    written = sheet.words(at, at + 1) if at < len(sheet.tokens) else ""
    return written if re.fullmatch("[A-Z]{3}", written) else ""


def _currency_behind(sheet: Sheet, at: int) -> tuple[str, int]:
    tokens = sheet.tokens
    for length in (3, 2, 1):
        words = "".join(token.text for token in tokens[at : at + length])
        if at + length <= len(tokens) and words in CURRENCIES:
            return CURRENCIES[words], at + length
    code = _code_at(sheet, at)
    return (code, at + 1) if code and code in bundled_rates().per_eur else ("", at)


def _unit(sheet: Sheet, at: int) -> tuple[float | None, str, int]:
    """Hours of the time that a price is for, whether it is of one card or of all, and where that ends."""
    hours, unit, end, position = None, "", at, at
    while position < len(sheet.tokens) and position < at + LONGEST * 2:
        text, pair = sheet.tokens[position].text, "".join(t.text for t in sheet.tokens[position : position + 2])
        name = pair if pair != text and pair in HOURS_IN else text
        if hours is None and name in HOURS_IN:
            position += 2 if name != text else 1
            hours = float(HOURS_IN[name])
            end = position
        elif not unit and (text in OF_ONE or text in OF_ALL):
            unit, position = ("gpu" if text in OF_ONE else "instance"), position + 1
            end = position if hours is not None else end
        elif text in BETWEEN:
            position += 1
        else:
            break
    return hours, unit if hours is not None else "", end


def _unit_before(sheet: Sheet, start: int) -> tuple[float, str, int] | None:
    """``每小时2元``, ``每卡每天300元``, ``一小时 2 元``."""
    words, at = "", start
    while at > 0 and start - at < LONGEST and sheet.tokens[at - 1].kind == "han" and not sheet.taken[at - 1]:
        at -= 1
        words = sheet.tokens[at].text + words
    for name in ("小时", "时", "天", "日", "月"):
        if words.endswith((f"每{name}", f"一{name}", f"卡{name}")):
            return float(HOURS_IN[name]), "gpu" if "卡" in words or "张" in words else "", at
    return None


def _large(sheet: Sheet, start: int, glued: bool = False) -> Quantity | None:
    """A number with its thousand, million or 亿 behind it; ``1e9`` is cut into number and word by the tokens."""
    plain = quantities.signed(sheet.tokens, start)
    if plain is None:
        return quantities.counted(sheet.tokens, start)
    following = sheet.tokens[plain.end] if plain.end < len(sheet.tokens) else None
    if following and following.text in LARGE and (following.glued or not glued or following.text in ("万", "亿")):
        return Quantity(plain.value * LARGE[following.text], plain.end + 1)
    if following and following.glued and following.text == "e" and plain.end + 1 < len(sheet.tokens):
        power = sheet.tokens[plain.end + 1]
        if power.kind == "number" and power.glued and power.number <= 18:
            return Quantity(plain.value * 10**power.number, plain.end + 2)
    return plain


def _share_at(sheet: Sheet, start: int) -> tuple[float, str, int] | None:
    number = quantities.signed(sheet.tokens, start) if start < len(sheet.tokens) else None
    if number is None and start < len(sheet.tokens) and HAN_DIGITS.get(sheet.tokens[start].text, 0) > 0:
        number = Quantity(float(HAN_DIGITS[sheet.tokens[start].text]), start + 1)
    if number is None:
        return None
    percent = number.end < len(sheet.tokens) and sheet.tokens[number.end].text == "%"
    return number.value / 100 if percent else number.value, "", number.end + percent


def _skipped(sheet: Sheet, at: int) -> int:
    """Past the small words between a name and its number."""
    while at < len(sheet.tokens) and sheet.tokens[at].text in LINKS:
        at += 1
    return at


def _past(sheet: Sheet, at: int, words: frozenset[str]) -> int:
    """Past a unit, with the slash before it; ``at`` where none stands there."""
    position = _skipped(sheet, at)
    for length in (3, 2, 1):
        unit = sheet.tokens[position : position + length]
        if len(unit) == length and "".join(token.text for token in unit) in words:
            return position + length
    return at


def _per_second(sheet: Sheet, at: int) -> int:
    """Where ``/s``, ``per second`` or ``每秒`` ends; 0 where none stands there."""
    texts = [token.text for token in sheet.tokens[at : at + 2]]
    if len(texts) == 2 and texts[0] in ("/", "per", "a", "每") and texts[1] in ("s", "sec", "second", "秒"):
        return at + 2
    return 0


def _each_second(sheet: Sheet, start: int) -> bool:
    return start > 1 and sheet.tokens[start - 2].text == "每" and sheet.tokens[start - 1].text == "秒"


def _is_context(sheet: Sheet, start: int, end: int) -> bool:
    """Whether the tokens are called a context or a length just before or behind."""
    key_behind = sheet.phrase(end, "key")
    near = [sheet.phrase(at, "key") for at in range(max(0, start - 3), start)]
    return any(word is not None and word.value == "seq_len" for word in (key_behind, *near))


def _note_speed(sheet: Sheet, value: float, start: int, end: int) -> None:
    """A speed, or that it is impossible."""
    if value > 0:
        _note(sheet, "tokens_per_second", value, start, end)
    else:
        sheet.invalid.append("tokens_per_second")
        sheet.take(start, end)


def _note(sheet: Sheet, name: str, value: Any, start: int, end: int) -> None:
    sheet.read(f"{PREFIX}{name}", value, start, end, "said of money and speed")


def economics_of(sheet: Sheet) -> dict[str, Any]:
    """Everything that was said of money and speed, by the name of its field."""
    said = (one for one in sheet.readings if one.field.startswith(PREFIX))
    found = {one.field.removeprefix(PREFIX): one.value for one in said}
    for index in range(len(sheet.tokens)):
        word = sheet.phrase(index, "country")
        if word and (found or sheet.questions & {"own", "price", "cost"}):
            found.setdefault("country", word.value)
    if "own" in sheet.questions:
        found["rent_or_buy"] = True
    if sheet.has("cue", value="spot") and sheet.questions & {"own", "price", "cost"}:
        found["spot"] = True
    return found
