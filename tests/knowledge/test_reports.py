"""Public reports of runs that went out of memory: numbers, causes, and what their answers must and must not say.

Each row names the thread that it condenses. ``causes`` are those that fit the thread; ``firm`` where someone there said
so. ``must`` and ``avoid`` are patterns of the answer in the report's own language.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bot import service
from knowledge.diagnosis import Diagnosis

LINES = (Path(__file__).parents[1] / "data" / "oom_reports.jsonl").read_text("utf-8").splitlines()
REPORTS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
UNITS = {"gib": 2**30, "mib": 2**20, "bytes": 1}
NAMES = {"gpu_total": "total", "not_pytorch": "outside_pytorch"}
LONGEST = 1800


@cache
def diagnosed(number: int) -> Diagnosis:
    return service.diagnose(REPORTS[number]["input"])


def every_report() -> list[Any]:
    return [pytest.param(number, id=report["id"]) for number, report in enumerate(REPORTS)]


@pytest.mark.parametrize("number", every_report())
def test_numbers_and_formats(number: int) -> None:
    found = diagnosed(number)
    have = {**found.message.model_dump(), **found.derived}
    for name, value in REPORTS[number]["facts"].items():
        stem, _, unit = name.rpartition("_")
        if unit in UNITS:
            size = value * UNITS[unit]
            assert have[NAMES.get(stem, stem)] == pytest.approx(size, rel=0.006, abs=2**20), name
    assert have["format"] == REPORTS[number]["facts"].get("format", have["format"])


@pytest.mark.parametrize("number", every_report())
def test_answers(number: int) -> None:
    text = diagnosed(number).text
    assert len(text) <= LONGEST
    missing = [one for one in REPORTS[number]["must"] if not re.search(one, text)]
    said = [one for one in REPORTS[number]["avoid"] if re.search(one, text, re.MULTILINE)]
    assert (missing, said) == ([], []), text


def test_causes() -> None:
    tops = [[cause.id for cause in diagnosed(number).causes] for number in range(len(REPORTS))]
    hits = [bool(set(report["causes"]) & set(found[:3])) for report, found in zip(REPORTS, tops, strict=True)]
    firsts = [found[:1] and found[0] in report["causes"] for report, found in zip(REPORTS, tops, strict=True)]
    firm = [hit for report, hit in zip(REPORTS, hits, strict=True) if report["firm"]]
    assert sum(hits) / len(hits) >= 0.92
    assert sum(firm) / len(firm) >= 0.95
    assert sum(map(bool, firsts)) / len(firsts) >= 0.75
