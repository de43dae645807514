"""Chinese names of model families, spelled as their models are: 百川2-13B is baichuan2-13B."""

import re
from functools import cache

from bot.intake.lexicon import lexicon
from bot.language import has_chinese


def spelled(text: str) -> str:
    """The text with every family's Chinese name in its Latin spelling; left out where that follows anyway."""
    if not has_chinese(text):
        return text
    names, pattern = _names()
    return pattern.sub(lambda found: names[found[1]] if not _follows(text, found, names) else "", text)


def _follows(text: str, found: re.Match[str], names: dict[str, str]) -> bool:
    """Whether the Latin name stands right behind the Chinese one: 通义千问Qwen2.5, 智谱 ChatGLM3."""
    behind = text[found.end() : found.end() + 12].lower().lstrip(" ·-(（:：")
    return behind.startswith((names[found[1]], "chat" + names[found[1]]))


@cache
def _names() -> tuple[dict[str, str], re.Pattern[str]]:
    names = lexicon().phrases("family")
    longest_first = sorted(names, key=len, reverse=True)
    return names, re.compile(rf"({'|'.join(longest_first)})(?:大模型|模型)?")
