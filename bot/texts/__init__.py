"""Short texts by key in English and Chinese; both files hold the same keys."""

from functools import cache
from pathlib import Path
from typing import Any

import tomli


@cache
def texts(lang: str) -> dict[str, Any]:
    """All texts of a language, by section and key."""
    return tomli.loads(Path(__file__).with_name(f"{lang}.toml").read_text("utf-8"))


def say(lang: str, key: str, **values: Any) -> str:
    """The text under a dotted key with its values filled in."""
    section, name = key.split(".", 1)
    text: str = texts(lang)[section][name]
    return text.format(**values)


def name_of(lang: str, section: str, key: str) -> str:
    """What a value is called in a language; the value itself when it has no other name."""
    return str(texts(lang)[section].get(key, key))
