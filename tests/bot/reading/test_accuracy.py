"""Configs and commands of every tool, with what each fixes by the tool's own source."""

import pytest

from bot.reading.read import flat, read_paste
from tests.bot.reading.scoring import cases, wrong_in


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case['id']}-{case['tool']}")
def test_a_config_is_read_as_its_tool_reads_it(case: dict) -> None:
    assert wrong_in(case, read_paste(case["text"])) == []


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case["id"])
def test_every_field_says_where_it_comes_from(case: dict) -> None:
    reading = read_paste(case["text"])
    assert set(flat(reading.run)) == set(reading.origins)
    assert all(reading.origins.values())
