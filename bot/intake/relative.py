"""Changes told against what was: "half the length", "twice the batch", batch 翻倍, 长度减半."""

from typing import Any

from bot.intake import quantities
from bot.intake.keyed import note_number
from bot.intake.quantities import Quantity
from bot.intake.sheet import Sheet

Fields = dict[str, Any]

FACTORS = {"half": 0.5, "halve": 0.5, "halved": 0.5, "halving": 0.5, "twice": 2.0, "double": 2.0, "doubled": 2.0,
           "doubling": 2.0, "triple": 3.0, "tripled": 3.0, "quadruple": 4.0, "quarter": 0.25}  # fmt: skip
FACTORS_ZH = {"减半": 0.5, "砍半": 0.5, "一半": 0.5, "折半": 0.5, "翻倍": 2.0, "加倍": 2.0, "翻番": 2.0}
MARKS = frozenset(FACTORS) | {"半", "倍", "番"}
BETWEEN = frozenset({"the", "that", "a", "of", "as", "many", "much", "long", "large", "big", "my", "our", "its", "to",
                     "s", "到", "成", "为", "的", "再", "都", "直", "接", "就", "给", "把", "it", "in", "by", "is",
                     "砍", "开", "缩", "降", "加", "减", "调", "改", "提", "拉", "升", "压", "如", "果"})  # fmt: skip
TO = frozenset({"to", "到", "成", "为", "至"})
USUAL = {"micro_batch": 1, "seq_len": 1024, "gpu_count": 1, "rank": 16, "grad_accum": 1, "concurrency": 1}
"""What a run has where nothing was said."""
NEAR = 4
"""Tokens between the factor and what it multiplies."""


def read_factors(sheet: Sheet) -> None:
    """Note ``(field, factor)`` for every size that is told as a multiple of what it was."""
    if not MARKS & {token.text for token in sheet.tokens}:
        return
    for index in sheet.free_starts():
        factor, end = _factor(sheet, index)
        if not factor:
            continue
        field, first, last = _behind(sheet, end) or _before(sheet, index) or ("", 0, 0)
        if field:
            first, last = min(first, index), max(last, end)
            if number := _result(sheet, field, last):
                note_number(sheet, field, number.value, first, number.end, "what it becomes")
            else:
                sheet.read("factor", (field, factor), first, last, "a multiple of what it was")


def _result(sheet: Sheet, field: str, end: int) -> Quantity | None:
    """The number that the change leads to: the 4096 of 长度翻倍到 4096, the 8 of "double the batch to 8"."""
    if end >= len(sheet.tokens) or sheet.tokens[end].text not in TO:
        return None
    return quantities.counted(sheet.tokens, end + 1, binary=field == "seq_len")


def _factor(sheet: Sheet, at: int) -> tuple[float, int]:
    """The factor at a token and where its words end; 0 where there is none."""
    text = sheet.tokens[at].text
    behind = sheet.tokens[at + 1].text if at + 1 < len(sheet.tokens) else ""
    if text in FACTORS:
        return FACTORS[text], at + 1
    if text + behind in FACTORS_ZH:
        return FACTORS_ZH[text + behind], at + 2
    number = quantities.small_count(sheet.tokens, at)
    times = number is not None and number.end < len(sheet.tokens) and sheet.tokens[number.end].text == "倍"
    return (number.value, number.end + 1) if number and times else (0.0, at)


def _behind(sheet: Sheet, at: int) -> tuple[str, int, int] | None:
    """The size that a factor stands before: "half the length"."""
    for index in range(at, min(len(sheet.tokens), at + NEAR)):
        key = sheet.phrase(index, "key", "cue")
        if key and (field := _sized(key.section, key.value)):
            return None if _has_number(sheet, key.end) else (field, index, key.end)
        if sheet.tokens[index].text not in BETWEEN:
            return None
    return None


def _before(sheet: Sheet, at: int) -> tuple[str, int, int] | None:
    """The size that a factor stands behind: batch 翻倍, "batch doubled"."""
    for index in range(at - 1, max(-1, at - 1 - 2 * NEAR), -1):
        key = sheet.phrase(index, "key", "cue")
        if key and (field := _sized(key.section, key.value)):
            between = {token.text for token in sheet.tokens[key.end : at]}
            return (field, index, key.end) if key.end <= at and between <= BETWEEN else None
    return None


def _sized(section: str, value: str) -> str:
    if section == "cue":
        return "gpu_count" if value == "cards" else ""
    return value if value in USUAL else ""


def _has_number(sheet: Sheet, at: int) -> bool:
    """Whether the size has a number of its own: "batch 2x seq 4k"."""
    while at < len(sheet.tokens) and sheet.tokens[at].text in "=: ":
        at += 1
    return at < len(sheet.tokens) and sheet.tokens[at].kind == "number"


def multiplied(run: Fields, factors: list[tuple[str, float]]) -> Fields:
    """The run with each size multiplied; one that would be no whole number stays as it is."""
    for field, factor in factors:
        old = (run.get("adapter") or {}).get("rank") if field == "rank" else run.get(field)
        if field == "seq_len" and old is None and isinstance(run.get("context_len"), int):
            field, old = "context_len", run["context_len"]
        value = (old if isinstance(old, int) else USUAL[field]) * factor
        if value >= 1 and value == int(value):
            run = {**run, **({"adapter": {"rank": int(value)}} if field == "rank" else {field: int(value)})}
    return run
