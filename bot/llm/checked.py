"""What a language model wrote, held against the text that the tools gave: no number, verdict or link of its own."""

import re
import unicodedata
from collections.abc import Iterator

from bot.answer import Answer
from bot.language import has_chinese
from estimator.schema import Estimate

LONGEST = 500
_NUMBER = re.compile(
    r"([$¥€£])?(\d[\d,]*(?:\.\d+)?)(?:\s*[-–~]\s*[$¥€£]?(\d[\d,]*(?:\.\d+)?))?\s*([A-Za-z]+|[%万亿元])?"
)
_ARITHMETIC = re.compile(r"\d\s*[*x×/^+÷]\s*\d|\d[eE][+-]?\d")
_SIZES = {"gib", "gb", "mib", "mb", "kib", "kb", "tib", "tb", "pb", "b", "g", "m", "k", "t", "bytes", "%", "万", "亿"}
_SAME = {
    "gigabytes": "gb", "gigabyte": "gb", "gibibytes": "gib", "gibibyte": "gib", "gigs": "gb", "byte": "b", "bytes": "b",
    "percent": "%", "usd": "$", "dollars": "$", "dollar": "$", "元": "¥", "cny": "¥", "rmb": "¥",
}  # fmt: skip
_IN_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    r"eighteen|nineteen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|billions?|trillions?|"
    r"dozens?|hal(?:f|ves|ved)|doubl(?:e[ds]?|ing)|twice|thrice|tripl(?:e[ds]?|ing)|quadrupled?|quarters?|thirds?|"
    r"\w+fold)\b|[两倆半倍]",
    re.I,
)
_LINK = re.compile(r"://|\bwww\.|@|\b[\w-]+\.(?:com|net|org|io|ai|cn|gg|xyz|ru|co|me|dev|app|ly|link)\b|`", re.I)
_NO = re.compile(
    r"(?:n't|not|never|cannot|no longer)\s+(?:\w+\s+){0,2}(?:fit|enough|run)\w*|too (?:big|large|much|small)|"
    r"out of memory|insufficient|放不下|装不下|不够|跑不动|跑不了|爆显存|不足",
    re.I,
)
_YES = re.compile(r"\b(?:fits?|fitting|enough|sufficient)\b|放得下|装得下|够用|足够|跑得动|能跑|可以跑|没问题", re.I)


def fault_of(prose: str, answer: Answer) -> str:
    """Why sentences may not stand beside an answer, in a word for the log; empty when they may."""
    text = unicodedata.normalize("NFKC", prose)
    checks = {
        "too long": len(text) > LONGEST,
        "another language": has_chinese(text) != (answer.lang == "zh"),
        "a link, a mention or code": _LINK.search(text) is not None,
        "a number of no tool": not _numbers_are_told(text, unicodedata.normalize("NFKC", answer.text)),
        "another verdict": not _verdict_is_told(text, answer),
    }
    return next((fault for fault, found in checks.items() if found), "")


def _numbers_are_told(text: str, told: str) -> bool:
    """Whether every number is one of the answer's text, with the same unit; sums and numbers in words never are."""
    if _IN_WORDS.search(text) or any(one.isnumeric() and not one.isascii() and one != "一" for one in text):
        return False
    if any(found.group() not in told for found in _ARITHMETIC.finditer(text)):
        return False
    known = set(_numbers(told))
    values = {value for value, _ in known}
    return all((value, unit) in known if unit else value in values for value, unit in _numbers(text))


def _numbers(text: str) -> Iterator[tuple[float, str]]:
    """Each number with its unit; both ends of a range have that of its end."""
    for found in _NUMBER.finditer(text):
        sign, first, last, word = found.groups()
        unit = sign or _unit(word or "")
        yield from ((float(one.replace(",", "")), unit) for one in (first, last) if one)


def _unit(word: str) -> str:
    unit = word.lower()
    unit = _SAME.get(unit, unit)
    return unit if unit in _SIZES or unit in ("$", "¥") else ""


def _verdict_is_told(text: str, answer: Answer) -> bool:
    """Whether "fits" and "does not fit" are each said only where a run, a step or an alternative has that verdict."""
    if not answer.estimates:
        return True
    verdicts = {verdict for found in answer.estimates for verdict in _verdicts(found)}
    denies = _NO.search(text) is not None
    affirms = _YES.search(_NO.sub(" ", text)) is not None
    return not (denies and "does_not_fit" not in verdicts) and not (affirms and not verdicts & {"fits", "tight"})


def _verdicts(found: Estimate) -> Iterator[str | None]:
    yield found.fit.verdict
    yield from (one.verdict for one in found.alternatives)
    yield from (one.verdict for one in found.downgrades)
    if found.plan:
        yield found.plan.verdict
