"""A simulated Discord in process (simcord) around the real client, each test with a data folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import simcord.interactions
from simcord.env import Env

from bot.discord.client import VramBot
from bot.settings import Settings

CHINESE = "wei"
"""The user whose client is set to Chinese; simcord's own interactions all are American."""


SECONDS_TO_SETTLE = 60.0
"""On a busy machine; simcord itself waits for five."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "simcord_env" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.simcord(settle_timeout=SECONDS_TO_SETTLE))


def made_bot(folder: Path) -> VramBot:
    """A client with its store in a folder; what was kept there before is still there."""
    return VramBot(
        Settings(vram_bot_data=folder, vram_bot_drawers=0, vram_bot_price_sources="none"),
        guild_ready_timeout=0,
        shard_count=1,
        daily=False,
    )


@pytest.fixture
def simcord_bot(tmp_path: Path) -> VramBot:
    return made_bot(tmp_path)


@pytest.fixture
def locales(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interactions in the language of who makes them."""
    made: Callable[..., tuple[Any, dict[str, Any]]] = simcord.interactions.base_payload

    def localised(backend: Any, **values: Any) -> tuple[Any, dict[str, Any]]:
        record, payload = made(backend, **values)
        if backend.get_user(values["user_id"]).name == CHINESE:
            payload["locale"] = "zh-CN"
        return record, payload

    monkeypatch.setattr(simcord.interactions, "base_payload", localised)
    yield


@pytest.fixture
def lab(locales: None, simcord_env: Env) -> SimpleNamespace:
    """A server with a channel, an English and a Chinese speaker."""
    guild = simcord_env.create_guild()
    return SimpleNamespace(
        env=simcord_env,
        guild=guild,
        channel=guild.create_text_channel("general"),
        ann=guild.add_member(simcord_env.create_user("ann")),
        wei=guild.add_member(simcord_env.create_user(CHINESE)),
    )
