"""Words as values: numbers, switches, lists; what YAML, shells and parsers of flags agree on."""

import re
from typing import Any

TRUE = frozenset({"true", "yes", "on", "1", "y", "t"})
FALSE = frozenset({"false", "no", "off", "0", "n", "f"})
NOTHING = frozenset({"", "null", "none", "~", "auto", "-"})
_NUMBER = re.compile(r"([+-]?(?:\d[\d_,]*)?(?:\.\d*)?(?:e[+-]?\d+)?)\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}
LONGEST_NUMBER = 40
_WHOLE = re.compile(r"[+-]?\d[\d_]*")
_REAL = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)
_STARTS = frozenset("+-.0123456789~")
_WORDS: dict[str, Any] = {
    "": None, "null": None, "~": None, "none": None, "true": True, "yes": True, "on": True, "false": False, "no": False,
    "off": False,
}  # fmt: skip


def is_open(value: Any) -> bool:
    """Whether a value fixes nothing: null, empty, "auto"."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def switch(value: Any) -> bool | None:
    """A value as true or false; None when it is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    word = str(value).strip().lower()
    return True if word in TRUE else False if word in FALSE else None


def number(value: Any) -> float | None:
    """A value as a number: 8, "8", "5e8", "32k" (32,000), "32K" (32,768), "1_024"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e18 else None
    text = str(value).strip()
    found = _NUMBER.fullmatch(text) if len(text) <= LONGEST_NUMBER else None
    if found is None or not any(letter.isdigit() for letter in found[1]):
        return None
    try:
        exact = float(found[1].replace("_", "").replace(",", "")) * _SCALES[found[2]]
    except (ValueError, OverflowError):
        return None
    return exact if abs(exact) < 1e18 else None


def whole(value: Any) -> int | None:
    """A value as a whole number; None when it is none."""
    exact = number(value)
    return int(exact) if exact is not None and exact == int(exact) else None


def words_of(value: Any) -> list[str]:
    """A value as a list of words: a list, "a,b", "a b", "['a', 'b']"."""
    if isinstance(value, list):
        return [word for one in value if isinstance(one, (str, int)) for word in words_of(str(one))]
    return [word for word in re.split(r"[\s,\[\]'\"()]+", str(value)) if word]


def plain(text: str) -> Any:
    """A plain (unquoted) scalar: null, true, false, a number, or the text itself."""
    if len(text) > LONGEST_NUMBER:
        return text
    if text[:1] not in _STARTS:
        return _WORDS.get(text.lower(), text)
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    return float(text.replace("_", "")) if _REAL.fullmatch(text) else _WORDS.get(text, text)
