"""What transformers' model classes look like: their block layout, their config spellings and their defaults.

``families.jsonl`` describes the blocks of each model type, ``config_defaults.jsonl`` the values a config leaves out
(class defaults of transformers 5.24.0), ``config_keys.json`` the spellings of one fact in different classes.
"""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

Row = dict[str, Any]


def read_text(name: str) -> str:
    """The text of a data file of the catalogue."""
    return files("estimator.catalogue").joinpath("data", name).read_text(encoding="utf-8")


def rows(name: str) -> Iterator[Row]:
    """The objects of a JSON-lines data file."""
    return (json.loads(line) for line in read_text(name).splitlines() if line)


@cache
def spellings() -> dict[str, list[str]]:
    """Canonical config key to every spelling that some class uses for it."""
    keys: dict[str, list[str]] = json.loads(read_text("config_keys.json"))
    return keys


@cache
def _family_rows() -> dict[str, Row]:
    return {row["type"]: row for row in rows("families.jsonl")}


@cache
def _default_rows() -> dict[str, Row]:
    return {row["type"]: row["defaults"] for row in rows("config_defaults.jsonl")}


def known_types() -> tuple[str, ...]:
    """The model types whose layout is described."""
    return tuple(_family_rows())


@cache
def family(model_type: str) -> Row | None:
    """The full layout of a model type, its parents' entries filled in; None when it is not described."""
    own = _family_rows().get(model_type)
    if own is None:
        return None
    parent = family(own["like"]) if "like" in own else None
    return _merged(parent, own) if parent else own


def text_type(model_type: str) -> str:
    """The type of the language model inside a multimodal one, or the type itself."""
    outer = _family_rows().get(model_type, {})
    return str(outer.get("text", model_type))


def nearest_types(model_type: str) -> list[str]:
    """Up to five described types that are spelled like ``model_type``."""
    return get_close_matches(model_type[:60].lower(), known_types(), n=5, cutoff=0.3) or ["llama", "qwen3", "mistral"]


def _merged(parent: Row, own: Row) -> Row:
    merged = {**parent, **own}
    for part in ("flags", "names", "dims"):
        merged[part] = {**parent.get(part, {}), **own.get(part, {})}
    return merged


@cache
def defaults(model_type: str) -> Row:
    """Class defaults of a model type under canonical keys; a type without its own takes its parent's."""
    own = _default_rows().get(model_type)
    if own is not None:
        return own
    parent = _family_rows().get(model_type, {}).get("defaults_of")
    return _default_rows().get(parent, {}) if parent else {}
