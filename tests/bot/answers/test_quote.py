"""Repeating a user's words must not ping, link, colour or format anything."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.answers.quote import LONGEST, quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qwen2.5-7b", "qwen2.5-7b"),
        ("open_llama_3b", "open_llama_3b"),
        ("RTX 4060 Ti", "RTX 4060 Ti"),
        ("通义千问 7B", "通义千问 7B"),
        ("@everyone", "everyone"),
        ("<@&123456789012345678> 7b", "7b"),
        ("<@!42>x<#7>", "x"),
        ("**bold** `code` ||spoiler||", "bold code spoiler"),
        ("[free nitro](http://example.invalid)", "free nitro(example.invalid)"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("a\u202eb\u200bc", "abc"),
        ("# heading", "heading"),
        ("http:\u200b//x.invalid", "x.invalid"),
        ("a:<//b", "b"),
        ("one\ntwo\tthree", "one two three"),
        ("_slanted_", "slanted"),
        ("mydiscord.gg/abc-7b", "mydiscord.gg abc-7b"),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    assert quoted(text) == expected


def test_long_words_are_cut() -> None:
    assert quoted("x" * 500) == "x" * (LONGEST - 1) + "…"


@given(st.text())
def test_nothing_live_survives(text: str) -> None:
    found = quoted(text)
    assert not set(found) & set("@`*~|[]<>\\\n\r\x1b")
    assert "://" not in found
    assert len(found) <= LONGEST
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in found)


@given(st.text())
def test_quoting_twice_changes_nothing(text: str) -> None:
    assert quoted(quoted(text)) == quoted(text)
