"""Words that ask or tell something, where they do not: 没怎么用, 快多了, 炸裂, "ran out of coffee"."""

from bot.intake.sheet import Sheet

BETTER = frozenset("快好强稳爽顺")
"""What is better by far with 多了 behind it; of memory, there is more of it."""
LOUD = {"炸": frozenset("裂锅"), "爆": frozenset("火款料红单肝发笑表棚")}
"""What is said of a success or of news: 炸裂, 爆火, 爆料."""
REACH = 4
"""Tokens behind "out of" that may name the memory."""
ROOM = frozenset({"room", "space", "headroom", "blocks", "mem"})
"""What else a card or a cache runs out of."""


def asks_nothing(sheet: Sheet, index: int) -> bool:
    """Whether the words that begin at a token mean something else there."""
    texts = [token.text for token in sheet.tokens]
    before, here = texts[index - 1] if index else "", texts[index]
    behind = texts[index + 1] if index + 1 < len(texts) else ""
    if here == "怎":
        return before in ("没", "不")
    if here == "多":
        return before in BETTER and behind == "了"
    if here in LOUD:
        return behind in LOUD[here] or (here == "爆" and before in ("火", "引"))
    return here in ("run", "runs", "ran", "running") and _is_of_something_else(sheet, index, texts)


def _is_of_something_else(sheet: Sheet, index: int, texts: list[str]) -> bool:
    """Whether what runs out is named, and is no memory: "the laptop runs out of battery"."""
    word = sheet.phrase(index, "question")
    if word is None or texts[word.end - 1] != "out" or texts[word.end : word.end + 1] != ["of"]:
        return False
    named = range(word.end + 1, min(word.end + 1 + REACH, len(texts)))
    cues = [sheet.word_at(at, "cue") for at in named]
    of_memory = any(cue is not None and cue.value in ("domain", "ram", "cache") for cue in cues)
    return not of_memory and not any(sheet.tokens[at].kind == "number" or texts[at] in ROOM for at in named)
