"""Numbers with their units at a place in the message: 7b, 24GB, 4k, 两, 8x."""

from typing import NamedTuple

from bot.intake.tokens import LARGEST, Token

HAN_DIGITS = {
    "零": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "俩": 2,
    "双": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
    "单": 1,
}
MEMORY_UNITS = {"g": 1.0, "gb": 1.0, "gib": 1.0, "gigs": 1.0, "gig": 1.0, "t": 1000.0, "tb": 1000.0, "mb": 0.001,
                "gbs": 1.0, "gs": 1.0}  # fmt: skip
SIZE_UNITS = {"b": 1.0, "bn": 1.0, "m": 0.001}
MULTIPLIERS = {"k": 1000, "m": 1_000_000, "千": 1000, "万": 10_000, "w": 10_000}
SPELLED = {"million": 1_000_000, "mil": 1_000_000, "thousand": 1000}
BILLION = frozenset({"billion", "billions", "bilion", "billon", "bilions"})
TIMES = frozenset("x*×")
SPELLED_COUNTS = {
    "dual": 2,
    "pair": 2,
    "couple": 2,
    "two": 2,
    "three": 3,
    "triple": 3,
    "four": 4,
    "quad": 4,
    "six": 6,
    "eight": 8,
}
HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
HAN_GROUPS = {"万": 10_000, "亿": 100_000_000}
MOST_COUNTED = 1000
MOST_ZEROS = 18
ROUND = 10
BINARY_STEP = 8
"""Lengths in multiples of eight thousand are meant in 1,024s (8k, 32k, 160k), other round ones in 1,000s (10k, 50k)."""
HUNDRED = 100


class Quantity(NamedTuple):
    """A value and the index after its last token."""

    value: float
    end: int


def signed(tokens: list[Token], start: int) -> Quantity | None:
    """A plain number, with its minus sign when that stands free of what comes before."""
    if start < len(tokens) and tokens[start].kind == "number":
        return Quantity(tokens[start].number, start + 1)
    minus = start + 1 < len(tokens) and tokens[start].text == "-" and _is_free_minus(tokens, start)
    if minus and tokens[start + 1].kind == "number" and tokens[start + 1].glued:
        return Quantity(-tokens[start + 1].number, start + 2)
    return None


def _is_free_minus(tokens: list[Token], start: int) -> bool:
    """Whether a hyphen stands free or behind a sign that sets a value: "batch -1", "batch:-1"."""
    return not tokens[start].glued or (start > 0 and tokens[start - 1].text in ":=")


def _glued_unit(tokens: list[Token], end: int) -> str:
    """The unit that touches the number before ``end``."""
    return tokens[end].text if end < len(tokens) and tokens[end].glued else ""


def _is_decimal(thousands: float) -> bool:
    """Whether a length of so many k is meant in thousands: the contexts sold as 10k, 50k, 100k, 200k are."""
    return thousands % ROUND == 0 and (thousands % BINARY_STEP != 0 or thousands % HUNDRED == 0)


def spelled_count(tokens: list[Token], start: int) -> Quantity | None:
    """``two``, ``dual``, ``quad``: counts of cards in words."""
    value = SPELLED_COUNTS.get(tokens[start].text) if start < len(tokens) else None
    return Quantity(value, start + 1) if value else None


def han_number(tokens: list[Token], start: int) -> Quantity | None:
    """A number in Chinese characters from 十 on: 三十二, 一百万, 百万; 千 and 百 alone begin names: 千问, 百川."""
    total = group = digit = 0
    end = start
    while end < len(tokens) and (end == start or tokens[end].glued):
        text = tokens[end].text
        if text in HAN_UNITS:
            group, digit = group + (digit or 1) * HAN_UNITS[text], 0
        elif text in HAN_GROUPS and end > start:
            total, group, digit = total + (group + digit) * HAN_GROUPS[text], 0, 0
        elif text in HAN_DIGITS and text != "单" and not digit:
            digit = HAN_DIGITS[text]
        else:
            break
        end += 1
    alone = end == start + 1 and tokens[start].text != "十"
    return None if end == start or alone else Quantity(total + group + digit, end)


def counted(tokens: list[Token], start: int, binary: bool = False) -> Quantity | None:
    """A number with k, m, 千 or 万 behind it; ``binary`` reads k as 1,024, as lengths in tokens are meant."""
    plain = signed(tokens, start)
    if plain is None:
        return han_number(tokens, start) if start < len(tokens) and tokens[start].kind == "han" else None
    spelled = SPELLED.get(tokens[plain.end].text) if plain.end < len(tokens) else None
    if spelled:
        return Quantity(plain.value * spelled, plain.end + 1)
    unit = _glued_unit(tokens, plain.end)
    if unit == "百" and _glued_unit(tokens, plain.end + 1) == "万":
        return Quantity(plain.value * 1_000_000, plain.end + 2)
    if unit == "e" and _glued_unit(tokens, plain.end + 1).isdigit():
        power = min(tokens[plain.end + 1].number, MOST_ZEROS)
        return Quantity(min(plain.value * 10**power, LARGEST), plain.end + 2)
    if unit not in MULTIPLIERS:
        return plain
    rest = tokens[plain.end + 1] if plain.end + 1 < len(tokens) else None
    if unit in "万w" and rest and rest.glued and rest.text.isdigit() and len(rest.text) == 1:
        return Quantity(plain.value * 10_000 + rest.number * 1000, plain.end + 2)  # 3万2
    factor = 1024 if binary and unit == "k" and not _is_decimal(plain.value) else MULTIPLIERS[unit]
    return Quantity(plain.value * factor, plain.end + 1)


def memory_gb(tokens: list[Token], start: int) -> Quantity | None:
    """A size of memory: 24G, 24 GB, 1T; in GB as people name cards."""
    plain = signed(tokens, start)
    if plain is None or plain.end >= len(tokens):
        return None
    measured = tokens[plain.end].text == "个" and plain.end + 1 < len(tokens)  # 8个G
    plain = Quantity(plain.value, plain.end + 1) if measured else plain
    token = tokens[plain.end]
    spaced = token.glued or token.text in ("gb", "gib", "tb", "g", "gigs", "gig")
    behind = tokens[plain.end + 1 : plain.end + 2]
    if not token.glued and behind and behind[0].glued and behind[0].kind == "number":
        return None  # the cards of "8 GB200"
    if spaced and token.text in MEMORY_UNITS:
        return Quantity(plain.value * MEMORY_UNITS[token.text], plain.end + 1)
    return None


SIZES = frozenset({4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 80, 96, 141, 192})
"""Memory in GB that cards are sold with."""


def bare_memory(tokens: list[Token], start: int) -> Quantity | None:
    """A number without a unit that is a card's size, behind a word for memory: 显存24."""
    plain = signed(tokens, start)
    if plain is None or plain.value not in SIZES:
        return None
    behind = tokens[plain.end] if plain.end < len(tokens) else None
    alone = behind is None or ((behind.text in ",.?!;，。？！" or not behind.glued) and behind.kind != "number")
    return plain if alone and (behind is None or behind.text not in ("x", "*", "×", "%")) else None


class Profile(NamedTuple):
    """A MIG profile, its memory, and the index after its last token."""

    name: str
    memory_gb: float
    end: int


def mig_profile(tokens: list[Token], start: int) -> Profile | None:
    """A slice of a card: 1g.10gb, 3g-40gb, 2g.20g."""
    pieces = tokens[start : start + 5]
    if len(pieces) < 5 or not all(piece.glued for piece in pieces[1:]):
        return None
    parts, unit, sign, memory, end = pieces
    shaped = parts.kind == memory.kind == "number" and unit.text == "g" and sign.text in ".-_"
    if not shaped or end.text not in ("g", "gb") or not (parts.text.isdigit() and memory.text.isdigit()):
        return None
    return Profile(f"{parts.text}g.{memory.text}gb", memory.number, start + 5)


def billions(tokens: list[Token], start: int) -> Quantity | None:
    """A count of parameters: 7b, 0.5B, 125m, 70 billion, 70亿; in billions."""
    plain = signed(tokens, start)
    if plain is None:
        return _han_billions(tokens, start)
    if plain.end >= len(tokens):
        return None
    unit = tokens[plain.end]
    if unit.text in BILLION:
        return Quantity(plain.value, plain.end + 1)
    if unit.text == "亿":
        return Quantity(plain.value / 10, plain.end + 1)
    if not unit.glued or unit.text not in SIZE_UNITS or (unit.text == "m" and plain.value < 10):
        return None
    return Quantity(plain.value * SIZE_UNITS[unit.text], plain.end + 1)


def _han_billions(tokens: list[Token], start: int) -> Quantity | None:
    """七百亿, 一百三十亿, in billions."""
    number = han_number(tokens, start) if start < len(tokens) and tokens[start].kind == "han" else None
    counts = number is not None and tokens[number.end - 1].text == "亿"
    return Quantity(number.value / 1e9, number.end) if number and counts else None


def small_count(tokens: list[Token], start: int) -> Quantity | None:
    """A count of things in digits or a Chinese numeral below a thousand."""
    token = tokens[start]
    if token.kind == "number" and token.number == int(token.number):
        return Quantity(token.number, start + 1)
    if token.text not in HAN_DIGITS:
        return None
    number = han_number(tokens, start)
    if number and number.end > start + 1 and number.value < MOST_COUNTED:
        return number
    value, end = HAN_DIGITS[token.text], start + 1
    if token.text == "十" and end < len(tokens) and 0 < HAN_DIGITS.get(tokens[end].text, 0) < 10:
        value, end = value + HAN_DIGITS[tokens[end].text], end + 1
    return Quantity(value, end)
