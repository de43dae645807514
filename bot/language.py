"""Which language to answer in: as asked, else as written, else as the machine is set."""

import os
import re
from collections.abc import Mapping

_CHINESE = "[\u3400-\u9fff]"
"""Compiled by the first text that is not ASCII: a class so wide takes milliseconds."""
LANGUAGES = ("en", "zh")
_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def has_chinese(text: str) -> bool:
    """Whether any Chinese character occurs."""
    return not text.isascii() and re.search(_CHINESE, text) is not None


def of_locale(environment: Mapping[str, str] | None = None) -> str:
    """The language of the locale that the environment names; English when it names none of ours."""
    variables = os.environ if environment is None else environment
    name = next((variables[key] for key in _LOCALE_VARIABLES if variables.get(key)), "")
    return "zh" if name.lower().startswith("zh") else "en"


def language_of(text: str, asked: str | None = None, fallback: str | None = None) -> str:
    """The language of a reply to ``text``; ``fallback`` is for text without words, else the locale decides."""
    if asked in LANGUAGES:
        return str(asked)
    if has_chinese(text):
        return "zh"
    return "en" if any(character.isalpha() for character in text) else fallback or of_locale()
