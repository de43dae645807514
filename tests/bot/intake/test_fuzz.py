"""Two thousand broken and hostile messages; ``python -m tests.fuzzing`` tries as many as one likes."""

from pathlib import Path

import pytest

from tests.fuzzing import fuzzed, read, replied


def test_every_message_is_read_at_once() -> None:
    outcome = fuzzed(2000, read, seed=20)
    assert outcome.count == 2000
    assert outcome.is_clean, [*outcome.raised, *outcome.slow][:3]


def test_nothing_is_echoed_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = fuzzed(40, replied, seed=21, warm=0)
    assert not outcome.raised, outcome.raised[:3]
    assert not outcome.live, outcome.live[:3]
    assert list(tmp_path.iterdir()) == []
