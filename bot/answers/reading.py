"""A reading of a config or command as text: what is stated and where, defaults, unknown keys, contradictions."""

import re
from typing import Any

from bot.answers.quote import quoted
from bot.language import has_chinese
from bot.reading.read import Reading, flat
from bot.reading.tables import tool
from bot.texts import name_of, say

WIDEST_VALUE = 60
NEAR = 72
"""Likeness, of 100, from which a known key is offered for an unknown one."""
MOST_UNKNOWN = 20
MOST_CLASHES = 4
WEIGHTY = ("weight_format", "micro_batch", "seq_len", "gradient_checkpointing", "adapter.rank", "adapter.targets")


def reading_text(reading: Reading, lang: str) -> str:
    """The reading in a language; user text in it is quoted."""
    if reading.error:
        return reading.error.message_zh if lang == "zh" else reading.error.message
    tool = reading.tool or ""
    lines = [say(lang, "read.title", tool=tool) if tool else say(lang, "read.title_none")]
    fields = flat(reading.run)
    stated = {name: one for name, one in fields.items() if not _is_default(reading, name)}
    lines += [say(lang, "read.stated"), *_table(stated, reading, lang)]
    assumed = {name: one for name, one in fields.items() if _is_default(reading, name)}
    if assumed:
        lines += ["", say(lang, "read.defaults", tool=tool), *_table(assumed, reading, lang, False)]
    return "\n".join([*lines, *_remarks(reading, lang, tool)])


def _is_default(reading: Reading, name: str) -> bool:
    return reading.origins.get(name, "").startswith("default")


def _table(fields: dict[str, Any], reading: Reading, lang: str, with_origin: bool = True) -> list[str]:
    """A field a line: its name, its value, the key and line it stands in."""
    names = {name: name_of(lang, "field", name) for name in fields}
    widest = max(map(_width, names.values()), default=0)
    rows = []
    for name, value in fields.items():
        origin = f"   <- {_localised(reading.origins[name], lang)}" if with_origin else ""
        rows.append(
            f"  {names[name]}{' ' * (widest - _width(names[name]))}  {quoted(_shown(value), WIDEST_VALUE)}{origin}"
        )
    return rows


def _localised(origin: str, lang: str) -> str:
    """Where a field stands, in a language."""
    told = quoted(origin, 90)
    if lang == "zh":
        told = re.sub(r" \(line (\d+)\)", lambda found: f"（{say(lang, 'origin.line', line=found[1])}）", told)
        told = re.sub(r"^keys ", say(lang, "origin.keys") + " ", told)
        for key in ("default", "words", "place", "by_name", "stored"):
            told = told.replace(say("en", f"origin.{key}"), say(lang, f"origin.{key}"))
    return told


def _width(text: str) -> int:
    """Columns on a terminal: a Chinese character takes two."""
    return sum(2 if has_chinese(letter) or letter in "（），" else 1 for letter in text)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items() if not isinstance(inner, (dict, list)))
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def remarks(reading: Reading, lang: str) -> list[str]:
    """What a pasted config has beside its run, a sentence each: defaults, contradictions, unknown keys."""
    if reading.error:
        return [reading_text(reading, lang)]
    tool = reading.tool or ""
    clashes = reading.contradictions_zh if lang == "zh" else reading.contradictions
    said = [say(lang, "read.clash", what=quoted(one, 160)) for one in clashes[:MOST_CLASHES]]
    said += [say(lang, "read.wrong", what=quoted(one, 80)) for one in reading.invalid[:MOST_CLASHES]]
    if reading.unknown_keys:
        names = ", ".join(_with_guess(name, reading) for name in reading.unknown_keys[:MOST_CLASHES])
        said.append(say(lang, "read.unknown", tool=tool, names=names))
    if reading.unseen:
        said.append(say(lang, "read.unseen", name=quoted(reading.unseen, 60)))
    assumed = _weighty(reading, lang)
    return [*said, say(lang, "read.assumed", tool=tool, values=assumed)] if assumed else said


def _with_guess(name: str, reading: Reading) -> str:
    """An unknown key, with the key of the tool that is nearest to it: "lora_rank (lora_r?)"."""
    from rapidfuzz import fuzz, process  # only unknown keys need it

    keys = {key.rsplit(".", 1)[-1] for key, fact in tool(reading.tool).keys.items() if fact} if reading.tool else set()
    bare = name.rsplit(".", 1)[-1].lstrip("-").replace("-", "_")
    near = process.extractOne(bare, sorted(keys), scorer=fuzz.ratio, score_cutoff=NEAR)
    return f"{quoted(name, 40)} ({near[0]}?)" if near else quoted(name, 40)


def _weighty(reading: Reading, lang: str) -> str:
    """The tool's defaults that decide memory most, on one line."""
    told = [
        f"{name_of(lang, 'field', name)} {quoted(_shown(value), 24)}"
        for name, value in flat(reading.run).items()
        if name in WEIGHTY and _is_default(reading, name)
    ]
    return name_of(lang, "sign", "comma").join(told)


def _remarks(reading: Reading, lang: str, tool: str) -> list[str]:
    lines: list[str] = []
    if reading.unknown_keys:
        names = ", ".join(_with_guess(name, reading) for name in reading.unknown_keys[:MOST_UNKNOWN])
        lines += ["", say(lang, "read.unknown", tool=tool, names=names)]
    clashes = reading.contradictions_zh if lang == "zh" else reading.contradictions
    for key, items in (("contradictions", clashes), ("invalid", reading.invalid)):
        if items:
            lines += ["", say(lang, f"read.{key}"), *(f"  - {quoted(one, 160)}" for one in items)]
    if reading.unseen:
        lines += ["", say(lang, "read.unseen", name=quoted(reading.unseen, 60))]
    if "model" not in reading.run:
        lines += ["", say(lang, "read.missing_model")]
    return lines
