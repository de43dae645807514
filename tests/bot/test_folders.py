"""Where files are kept."""

from pathlib import Path

import pytest

from bot.folders import cache_folder


def test_the_data_folder_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    assert cache_folder("hub") == tmp_path / "cache" / "hub"


def test_else_it_is_the_platforms_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VRAM_BOT_DATA", raising=False)
    assert cache_folder("hub").parts[-2:] == ("vram-bot", "hub")
