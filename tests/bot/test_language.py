"""The language of a reply."""

import pytest

from bot.language import language_of, of_locale


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        ("7b lora 24g", None, "en"),
        ("7b lora 24g 够吗", None, "zh"),
        ("7b lora 24g", "zh", "zh"),
        ("够吗", "en", "en"),
        ("够吗", "fr", "zh"),
    ],
)
def test_language_of_a_text(text: str, asked: str | None, expected: str) -> None:
    assert language_of(text, asked) == expected


def test_a_text_without_words_takes_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert language_of("24") == "zh"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_TW"}, "zh"),
        ({"LANG": "C"}, "en"),
    ],
)
def test_locale(variables: dict[str, str], expected: str) -> None:
    assert of_locale(variables) == expected
