"""What watches over the bot is told the truth."""

import socket

import aiohttp
import pytest

from bot.discord import health
from bot.settings import Settings


@pytest.fixture
def place() -> str:
    """A host and a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


async def asked(place: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{place}{path}") as response:
        return response.status, (await response.text()).strip()


async def test_it_is_alive_before_it_is_ready(place: str) -> None:
    reasons = ["not connected to Discord", ""]

    async def ready() -> str:
        return reasons.pop(0)

    runner = await health.opened(Settings(vram_bot_health=place), ready)
    assert runner is not None
    try:
        assert await asked(place, "/livez") == (200, "alive")
        assert await asked(place, "/readyz") == (503, "not connected to Discord")
        assert await asked(place, "/readyz") == (200, "ready")
        assert (await asked(place, "/"))[0] == 404
        with pytest.raises(OSError, match="address"):
            await health.opened(Settings(vram_bot_health=place), ready)
    finally:
        await runner.cleanup()


async def test_nothing_is_served_unless_asked_for() -> None:
    async def ready() -> str:
        return ""

    assert await health.opened(Settings(vram_bot_health=""), ready) is None
