"""The part of a text that matters: bounded, without colours, progress bars and rank prefixes."""

import re

from knowledge.logs.families import families

HEAD, TAIL = 64 * 2**10, 2**18
"""Characters that are kept of a long log: the launch at its beginning, the failure at its end."""

WHOLE = 12_000
"""Texts up to this long are read whole."""

SHORT = 2000
"""Texts up to this long may say things twice."""

BEFORE, AFTER = 2200, 1000
"""Characters kept around an error."""
FIRST, LAST = 2000, 1500
"""Characters kept of the beginning, where the launch is, and of the end."""
NEARBY, ENDING = 2**12, 48 * 2**10
"""An error is looked for in so many characters at the end first."""
MOST_ERRORS = 4
"""Places with words of an error that are kept, the last ones."""

EXCERPT = 14_000
"""No excerpt of a log is longer."""

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
RANK = re.compile(
    r"\s*(?:\[(?:rank|default)?(\d{1,4})\]:?|\((?:[A-Z]\w+ )*pid=\d+\)|(?:Worker|rank|Rank)[ _]?(\d+)[:|]) ?"
)
NUMBERS = re.compile(r"\d[\d.,:]*")
SETTINGS = (
    "trainable params", "instantaneous batch size", "total optimization steps", "gradient accumulation steps",
    "num examples", "training with dataparallel", "loading checkpoint shards", "model weights took", "torch_dtype",
    "max_seq_length", "model weights take", "buffer size =", "kv self size", "zero_optimization", "world_size",
)  # fmt: skip
"""What programs print of their settings, far from the error."""
NEAR = 400
LINE = 500
"""Lines are taken whole up to so many characters beyond a span."""


def bounded(text: str) -> str:
    """The text, or of a long one its head and its end; where the end holds no error, the part around the last one."""
    if len(text) <= HEAD + TAIL:
        return text
    tail = text[-TAIL:]
    if not _last_error(tail.lower()):
        found = _last_error(text.lower())
        tail = text[max(HEAD, found - TAIL // 2) : found + TAIL // 2] if found else tail
    return text[:HEAD] + "\n" + tail


def cleaned(text: str) -> tuple[str, frozenset[int]]:
    """The text without terminal codes, with the last state of each progress bar, and the ranks that wrote it."""
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n").replace("\x00", "")
    lines = [_last_state(line) if "\r" in line else line for line in text.split("\n")]
    prefixes = [RANK.match(line) for line in lines]
    ranks = frozenset(int(one[1] or one[2]) for one in prefixes if one and (one[1] or one[2]))
    own = [line[one.end() :] if one else line for line, one in zip(lines, prefixes, strict=True)]
    return "\n".join(own), ranks


def _last_state(line: str) -> str:
    """What a progress bar showed last."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def excerpt(text: str) -> str:
    """The lines around the last errors and the settings, and the beginning and the end; short texts whole."""
    if len(text) <= SHORT:
        return text
    if len(text) <= WHOLE:
        return _told_once(text)
    lowered = text.lower()
    spans = [(0, FIRST), (len(text) - LAST, len(text))]
    spans += [(at - BEFORE, at + AFTER) for at in _errors(lowered)]
    spans += [(at - 20, at + NEAR) for mark in SETTINGS if (at := lowered.rfind(mark)) >= 0]
    pieces = [_told_once(text[start:end]) for start, end in _merged([_lines_of(text, *span) for span in spans])]
    return _told_once("\n".join(pieces))[-EXCERPT:]


def _errors(lowered: str) -> list[int]:
    """Where words of each kind of message occur last: the last of these places, in the end of the text if it has any.

    Most errors are told at the very end, with many such words, so that no more of the text needs to be searched.
    """
    marks = [mark for family in families() for mark in family.marks]
    for window in (NEARBY, ENDING):
        found = _last_places(lowered, marks, max(0, len(lowered) - window))
        if len(found) >= MOST_ERRORS:
            break
    return (found or _last_places(lowered, marks, 0))[-MOST_ERRORS:]


def _last_places(lowered: str, marks: list[str], start: int) -> list[int]:
    return sorted(at for mark in marks if (at := lowered.rfind(mark, start)) >= 0)


def _told_once(text: str) -> str:
    """The text without lines that differ from an earlier one in their numbers only: steps of a bar, ranks, losses."""
    seen: set[str] = set()
    kept = []
    for line in text.split("\n"):
        form = NUMBERS.sub("0", line)
        if form not in seen or not form.strip():
            kept.append(line)
        seen.add(form)
    return "\n".join(kept)


def _lines_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The span widened to whole lines; lines without an end are cut."""
    start, end = max(0, start), min(len(text), end)
    line = text.rfind("\n", max(0, start - LINE), start) + 1 or start
    rest = text.find("\n", end, end + LINE)
    return line, rest if rest >= 0 else end


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _last_error(lowered: str) -> int:
    """Where the last error begins; 0 when there is none."""
    marks = (mark for family in families() if family.is_error for mark in family.marks)
    return max(0, *(lowered.rfind(mark) for mark in marks))
