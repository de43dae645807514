"""Work that must not hold the event loop up: answers in threads, the store in one of its own, drawing in a process."""

import asyncio
import logging
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from bot.discord.drawing import NOTHING, drawn, prepare
from bot.settings import Settings
from bot.store import Store

P = ParamSpec("P")
Result = TypeVar("Result")

log = logging.getLogger("bot.discord")

MOST_WAITING = 64
"""Questions that are answered or wait for it; one more is turned away at once instead of being answered too late."""


class Busy(Exception):
    """Too much is waiting already, or the bot is about to stop."""


class Desk:
    """Runs plain functions beside the event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers = ThreadPoolExecutor(settings.vram_bot_workers, "answer")
        self._shelf = ThreadPoolExecutor(1, "store")
        self._drawers: Executor = _drawers(settings.vram_bot_drawers) or self._workers
        self._store: Store | None = None
        self._waiting = 0

    async def open(self) -> None:
        """Open the store, once."""
        if self._store is None:
            path = Path(self._settings.vram_bot_data) / "bot.db"
            self._store = await self._on_shelf(partial(Store, path, self._settings.vram_bot_keep_days))
            self._drawers.submit(drawn, NOTHING, 1)  # starts the process before the first card needs it

    async def work(self, function: Callable[P, Result], *args: P.args, **values: P.kwargs) -> Result:
        """The result of a function, run in a worker thread; ``Busy`` when too many wait."""
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._workers, partial(function, *args, **values))
        finally:
            self._waiting -= 1

    async def draw(self, svg: str, width: int) -> bytes | None:
        """An SVG as PNG; None, and a new process, when the one that draws was killed."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._drawers, drawn, svg, width)
        except BrokenProcessPool:
            log.error("the process that draws is gone; a new one is started")
            self._drawers = _drawers(self._settings.vram_bot_drawers) or self._workers
            return None

    async def stored(
        self, method: Callable[Concatenate[Store, P], Result], *args: P.args, **values: P.kwargs
    ) -> Result:
        """The result of a method of the store, run in its thread."""
        if self._store is None:
            raise Busy
        return await self._on_shelf(partial(method, self._store, *args, **values))

    async def close(self) -> None:
        """Close the store and let the threads end; what still waits is dropped."""
        store, self._store = self._store, None
        if store is not None:
            await self._on_shelf(store.close)
        for pool in (self._drawers, self._workers, self._shelf):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _on_shelf(self, function: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._shelf, function)


def _drawers(count: int) -> Executor | None:
    """So many processes; started afresh rather than forked, which a process with threads cannot be safely."""
    if not count:
        return None
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=prepare)
