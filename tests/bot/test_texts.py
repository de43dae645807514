"""Both languages say the same things with the same values."""

from collections.abc import Iterator
from string import Formatter
from typing import Any

import pytest

from bot.intake.keyed import LIMITS
from bot.texts import name_of, say, texts


def entries(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from entries(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def fields_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_hold_the_same_keys() -> None:
    assert dict(entries(texts("en"))).keys() == dict(entries(texts("zh"))).keys()


@pytest.mark.parametrize("key", [key for key, value in entries(texts("en")) if isinstance(value, str)])
def test_both_languages_use_the_same_values(key: str) -> None:
    assert fields_in(dict(entries(texts("en")))[key]) == fields_in(dict(entries(texts("zh")))[key])


def test_say_fills_values_in() -> None:
    assert say("en", "cli.unknown_field", field="sqe_len", hint="; did you mean seq_len") == (
        'unknown field "sqe_len"; did you mean seq_len'
    )


def test_a_value_without_a_name_keeps_its_own() -> None:
    assert name_of("zh", "method", "something-new") == "something-new"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_impossible_number_has_its_sentence(lang: str) -> None:
    assert set(LIMITS) <= set(texts(lang)["invalid"])
