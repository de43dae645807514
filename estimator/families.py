"""What transformers' model classes look like: their block layout, their config spellings and their defaults.

``families.jsonl`` describes the blocks of each model type, ``config_defaults.jsonl`` the values a config leaves out
(class defaults of transformers 5.24.0), ``config_keys.json`` the spellings of one fact in different classes.
"""

import json
from functools import cache
from typing import Any

from estimator.datafiles import read_text

Row = dict[str, Any]


@cache
def _lines(name: str) -> dict[str, str]:
    """The lines of a JSON-lines file by their ``type``, unparsed: a look-up needs one or two of them."""
    return {line.split('"', 4)[3]: line for line in read_text(name).splitlines()}


@cache
def _row(name: str, model_type: str) -> Row | None:
    line = _lines(name).get(model_type)
    return json.loads(line) if line else None


@cache
def spellings() -> dict[str, list[str]]:
    """Canonical config key to every spelling that some class uses for it."""
    keys: dict[str, list[str]] = json.loads(read_text("config_keys.json"))
    return keys


def known_types() -> tuple[str, ...]:
    """The model types whose layout is described."""
    return tuple(_lines("families.jsonl"))


@cache
def family(model_type: str) -> Row | None:
    """The full layout of a model type, its parents' entries filled in; None when it is not described."""
    own = _row("families.jsonl", model_type)
    if own is None:
        return None
    parent = family(own["like"]) if "like" in own else None
    return _merged(parent, own) if parent else own


def text_type(model_type: str) -> str:
    """The type of the language model inside a multimodal one, or the type itself."""
    outer = _row("families.jsonl", model_type) or {}
    return str(outer.get("text", model_type))


def nearest_types(model_type: str) -> list[str]:
    """Up to five described types that are spelled like ``model_type``."""
    # Imported late: only a refusal needs it.
    from difflib import get_close_matches

    return get_close_matches(model_type[:60].lower(), known_types(), n=5, cutoff=0.3) or ["llama", "qwen3", "mistral"]


def _merged(parent: Row, own: Row) -> Row:
    merged = {**parent, **own}
    for part in ("flags", "names", "dims"):
        merged[part] = {**parent.get(part, {}), **own.get(part, {})}
    return merged


@cache
def defaults(model_type: str) -> Row:
    """Class defaults of a model type under canonical keys; a type without its own takes its parent's."""
    own = _row("config_defaults.jsonl", model_type)
    if own is None:
        parent = (_row("families.jsonl", model_type) or {}).get("defaults_of", "")
        own = _row("config_defaults.jsonl", parent)
    found: Row = own["defaults"] if own else {}
    return found
