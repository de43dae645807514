"""Comparisons of facts."""

import pytest

from knowledge.facts import Facts, holds, names_in, told
from knowledge.telling import filled

GIB = 2**30
FACTS = Facts(
    {"tried": 2 * GIB, "unused_cache": 3 * GIB, "phase": "load", "zero": 3, "kv_tokens": 1216, "total": None},
    {"tried": "diagnosis.message.tried", "unused_cache": "diagnosis.derived.unused_cache"},
)


@pytest.mark.parametrize(
    ("comparison", "true"),
    [
        ("unused_cache >= tried", True),
        ("unused_cache > 2 * tried", False),
        ("tried ~ 2.03 GiB", True),
        ("tried ~ 2.2 GiB", False),
        ("tried <= 2048 MiB", True),
        ("phase = load", True),
        ("phase != backward", True),
        ("zero = 3", True),
        ("free > 1 GiB", False),
        ("tried > total", False),
        ("has tried", True),
        ("no free", True),
        ("no tried", False),
    ],
)
def test_a_comparison(comparison: str, true: bool) -> None:
    assert holds(comparison, FACTS) is true


@pytest.mark.parametrize("broken", ["tried", "tried > ", "tried > (1)"])
def test_what_is_no_comparison_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        holds(broken, FACTS)


def test_a_comparison_is_told_with_its_figures() -> None:
    assert told("unused_cache >= tried", FACTS) == "unused_cache 3.00 GiB >= tried 2.00 GiB"
    assert names_in("unused_cache >= tried") == ["unused_cache"]


def test_sentences_get_their_figures() -> None:
    assert filled("{tried} of {kv_tokens}, {free}", FACTS) == "2.00 GiB of 1,216, ?"
