"""What a "how" asks: for a way ("how do I lower …", 怎么把显存降下来) or for a reason ("how come …", 怎么变少了)."""

from bot.intake.sheet import Sheet

WAYS_ZH = frozenset("降减省缩压解处办搞弄调改优避防放塞挤训跑部配设选分切卸破救整修微装提加用拆让拿拉搭扩量")
"""First characters of what can be done: 降低, 解决, 处理, 避免, 微调, 部署, 配置."""
REASONS_ZH = frozenset("变这那才会只还反差一突总老多少涨爆炸来算回没比就不可又更都高低大小是理得到")
"""First characters of what only can be so: 变少了, 这么大, 会爆, 还是, 算出来的, 回事."""
MADE_ZH = frozenset("把让使将")
"""Behind a 怎么 these say that something is to be done."""
WAYS_EN = frozenset({"to", "do", "can", "could", "should", "would", "shall", "might", "did"})
ONES = frozenset({"i", "we", "you", "one", "people", "folks", "guys", "they", "someone", "anyone", "everyone", "ppl"})
COUNTED = frozenset({"calculate", "compute", "calc", "estimate", "work", "know", "tell", "get", "count", "figure"})
REASONS_EN = frozenset({"come", "is", "are", "was", "were", "does", "did", "has", "have"})
MARKS_OF_WAYS = frozenset({"how", "怎", "咋", "如"})
REACH = 10
"""Tokens behind a "how" in which its verb stands."""


def asks_how(sheet: Sheet, start: int) -> str | None:
    """``advice`` where a way is asked for, ``explain`` where a reason is, ``odd`` where one may be, else None."""
    return _english(sheet, start) if sheet.tokens[start].text == "how" else _chinese(sheet, start)


def _english(sheet: Sheet, start: int) -> str | None:
    """``how to``, ``how do I``, ``how can we`` ask for a way, unless to calculate; ``how come``, ``how is`` do not."""
    texts = [token.text for token in sheet.tokens[start + 1 : start + 5]]
    if not texts or texts[0] not in WAYS_EN | REASONS_EN:
        return None
    active = texts[0] == "to" or (texts[0] in WAYS_EN and len(texts) > 1 and texts[1] in ONES)
    verb = texts[1:2] if texts[0] == "to" else texts[2:3]
    if not active:
        return "explain" if texts[0] == "come" else "odd"
    return "explain" if set(verb) & (COUNTED - {"get", "work"}) else "advice"


def _chinese(sheet: Sheet, start: int) -> str | None:
    """The first verb behind 怎么, 咋, 如何 says which; nothing is asked in 怎么样."""
    texts = [token.text for token in sheet.tokens[start : start + REACH]]
    if texts[0] == "如" and texts[1:2] != ["何"]:
        return None
    for text in texts[1 + (texts[1:2] in (["么"], ["何"], ["样"])) :]:
        if text in WAYS_ZH or text in MADE_ZH:
            return "advice"
        if text in REASONS_ZH:
            return "explain"
        if len(text) == 1 and text in ",.?!;，。？！；":
            return None
    return None
