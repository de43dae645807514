"""How ``vram-bot discord`` ends when it cannot begin."""

from pathlib import Path

import discord
import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.bot.cli.runner import run


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Addresses that lead nowhere, put back afterwards."""
    monkeypatch.setattr(Route, "BASE", Route.BASE)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", DiscordWebSocket.DEFAULT_GATEWAY)
    monkeypatch.setattr(discord.Asset, "BASE", discord.Asset.BASE)
    monkeypatch.setenv("DISCORD_API_BASE", "http://127.0.0.1:9/api/v10")
    monkeypatch.setenv("DISCORD_TOKEN", "some.secret.token")
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    monkeypatch.setenv("VRAM_BOT_DRAWERS", "0")


@pytest.mark.parametrize(
    ("name", "value", "status", "said"),
    [
        ("DISCORD_TOKEN", "", 2, "DISCORD_TOKEN is not set"),
        ("DISCORD_API_BASE", "localhost", 2, "DISCORD_API_BASE cannot be used: it must begin with"),
        ("DISCORD_API_BASE", "http://127.0.0.1:9/api/v10", 1, "cannot be reached"),
    ],
)
def test_a_start_that_cannot_work_ends_with_one_sentence(
    name: str, value: str, status: int, said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv(name, value)
    done = run(capsys, "discord")
    assert done.status == status
    assert said in done.err and "secret" not in done.err and len(done.err.strip().splitlines()[-1]) < 200


def test_the_sentence_is_in_the_machines_language(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.delenv("DISCORD_TOKEN")
    assert "没有设置 DISCORD_TOKEN" in run(capsys, "discord").err


@pytest.mark.parametrize("token", ["abc", "Bot a.b.c", "a.b", "a.b.c.d", "令牌.b.c", "1234567890123456789", "a..c"])
def test_what_is_no_token_is_not_sent_to_discord(
    token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("DISCORD_API_BASE")
    monkeypatch.setenv("DISCORD_TOKEN", token)
    done = run(capsys, "discord")
    assert done.status == 2
    (sentence,) = done.err.strip().splitlines()
    assert "three parts" in sentence and token not in sentence


def test_a_folder_that_cannot_be_written_in_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (tmp_path / "file").touch()
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path / "file" / "folder"))
    done = run(capsys, "discord")
    assert done.status == 2
    assert "VRAM_BOT_DATA cannot be used: Not a directory" in done.err
