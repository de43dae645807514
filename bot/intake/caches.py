"""What a message says of a serving run's prompts and cache: "4k in 1k out", "fp8 vs fp16 kv cache"."""

from bot.intake import quantities
from bot.intake.keyed import note_number
from bot.intake.sheet import Sheet

INTO = frozenset({"in", "input", "inputs", "prompt", "prompts", "prefill", "入"})
OUT = frozenset({"out", "output", "outputs", "gen", "generated", "generation", "decode", "出"})
BETWEEN = frozenset({",", "/", "+", "and", "tokens", "token", "、", "和"})
KINDS = {"fp8": "fp8", "fp16": "fp16", "bf16": "bf16", "int8": "q8_0", "Q8_0": "q8_0", "nf4": "q4_0", "Q4_0": "q4_0",
         "4bit": "q4_0", "q4": "q4_0", "q8": "q8_0"}  # fmt: skip
"""Types of the cache by what their names mean elsewhere."""
JOINED = frozenset({"vs", "versus", "or", "and", "和", "与", "跟", "还", "是", "/", "、", "对", "比"})
MOST_BACK = 8


def read_in_and_out(sheet: Sheet) -> None:
    """Tokens of the prompt and of the answer, each before its word: "4k in 1k out", "2k input, 512 output"."""
    if not OUT & {token.text for token in sheet.tokens}:
        return
    for index in sheet.free_starts():
        into = _before(sheet, index, INTO)
        at = into[1] if into else len(sheet.tokens)
        while at < len(sheet.tokens) and sheet.tokens[at].text in BETWEEN:
            at += 1
        out = _before(sheet, at, OUT) if at < len(sheet.tokens) else None
        if into and out:
            note_number(sheet, "seq_len", into[0], index, into[1], "tokens of the prompt")
            note_number(sheet, "new_tokens", out[0], at, out[1], "tokens of the answer")


def _before(sheet: Sheet, at: int, words: frozenset[str]) -> tuple[float, int] | None:
    """A count of tokens and where its word ends, when one of ``words`` stands behind it."""
    number = quantities.counted(sheet.tokens, at, binary=True)
    end = number.end if number else len(sheet.tokens)
    end += end < len(sheet.tokens) and sheet.tokens[end].text in ("token", "tokens")
    if number is None or end >= len(sheet.tokens) or sheet.tokens[end].text not in words:
        return None
    return number.value, end + 1


def read_caches(sheet: Sheet) -> None:
    """Types of the cache that are set against each other before its name: "fp8 vs fp16 kv cache"."""
    for index in sheet.free_starts():
        cache = sheet.phrase(index, "cue")
        if cache is None or cache.value != "cache":
            continue
        kinds = _kinds_before(sheet, index)
        if len(kinds) > 1:
            for value, start, end in reversed(kinds):
                sheet.read("kv_dtype", value, start, end, "a type of the key/value cache")
            sheet.take(cache.start, cache.end)
            sheet.against = True


def _kinds_before(sheet: Sheet, at: int) -> list[tuple[str, int, int]]:
    """The types named one after the other up to a token, the last first."""
    kinds: list[tuple[str, int, int]] = []
    start = at
    while start > max(0, at - 2 * MOST_BACK):
        words = (sheet.phrase(one, "precision", "weight_format") for one in range(max(0, start - 3), start))
        word = next((one for one in words if one and one.end == start and one.value in KINDS), None)
        if word is None:
            break
        kinds.append((KINDS[word.value], word.start, word.end))
        start = word.start
        while start > 0 and sheet.tokens[start - 1].text in JOINED:
            start -= 1
        if start == word.start:
            break
    return kinds
