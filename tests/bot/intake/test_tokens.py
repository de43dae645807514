"""Cutting messages into tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.intake.tokens import LARGEST, MAX_CHARACTERS, MAX_TOKENS, clean, tokenize


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("qwen2.5-7b", ["qwen", "2.5", "-", "7", "b"]),
        ("8xH100-80GB", ["8", "x", "h", "100", "-", "80", "gb"]),
        ("4090x2", ["4090", "x", "2"]),
        ("72Bqwen", ["72", "b", "qwen"]),
        ("7billion 4bit", ["7", "billion", "4", "bit"]),
        ("两张A100 40G", ["两", "张", "a", "100", "40", "g"]),
        ("1,024 120_000", ["1,024", "120_000"]),
        ("７Ｂ", ["7", "b"]),
    ],
)
def test_pieces(text: str, pieces: list[str]) -> None:
    assert [token.text for token in tokenize(clean(text))] == pieces


def test_thousands_are_one_number() -> None:
    assert [token.number for token in tokenize("1,024 120_000 0.5")] == [1024, 120_000, 0.5]


def test_glue_says_what_touches() -> None:
    assert [token.glued for token in tokenize("bs4 4k")] == [False, True, False, True]


@pytest.mark.parametrize(
    "text", ["<@123> 7b", "<@&123> 7b", "@everyone 7b", "<:fire:12> 7b", "https://host.invalid/7b"]
)
def test_mentions_and_hosts_are_not_read(text: str) -> None:
    assert clean(text).strip() == "7b"


@given(st.text(max_size=200))
def test_any_text_can_be_cut(text: str) -> None:
    cleaned = clean(text)
    for token in tokenize(cleaned):
        assert cleaned[token.start : token.end].lower() == token.text


def test_a_novel_is_cut_short() -> None:
    assert len(clean("x" * 10 * MAX_CHARACTERS)) == MAX_CHARACTERS
    assert len(tokenize("7b " * 10 * MAX_TOKENS)) == MAX_TOKENS


def test_a_row_of_digits_is_a_finite_number() -> None:
    assert tokenize("1" * 4000)[0].number == LARGEST
