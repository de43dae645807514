"""Work beside the event loop: nothing that takes long holds up the acknowledgements of others."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.discord.desk import MOST_WAITING, Busy, Desk
from bot.settings import Settings
from bot.store import Store

PATIENCE = 5.0
"""Seconds after which work gives up waiting for an event loop that it holds up."""


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(Settings(vram_bot_data=tmp_path, vram_bot_drawers=0))
    await found.open()
    yield found
    await found.close()


async def test_the_event_loop_is_free_while_a_question_is_answered(desk: Desk) -> None:
    free = threading.Event()
    answered = asyncio.create_task(desk.work(free.wait, PATIENCE))
    asyncio.get_running_loop().call_soon(free.set)
    assert await answered, "the loop turned while the work was waiting for it"


async def test_the_event_loop_is_free_while_the_store_works(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()

    def slow(_: Store, __: str) -> str:
        return "in time" if free.wait(PATIENCE) else ""

    monkeypatch.setattr(Store, "note", slow)
    read = asyncio.create_task(desk.stored(Store.note, "any"))
    asyncio.get_running_loop().call_soon(free.set)
    assert await read == "in time"


async def test_the_event_loop_is_free_while_a_picture_is_drawn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    monkeypatch.setattr("bot.discord.desk.drawn", lambda *_: b"drawn" if free.wait(PATIENCE) else b"")
    picture = asyncio.create_task(desk.draw("<svg/>", 1))
    asyncio.get_running_loop().call_soon(free.set)
    assert await picture == b"drawn"


async def test_one_question_too_many_is_turned_away(desk: Desk) -> None:
    free = threading.Event()
    waiting = [asyncio.create_task(desk.work(free.wait, PATIENCE)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await desk.work(free.wait, PATIENCE)
    free.set()
    assert all(await asyncio.gather(*waiting))
    assert await desk.work(free.is_set), "there is room again"
