"""Work that must not hold the event loop up: answers in a few threads, the store in one of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from bot.settings import Settings
from bot.store import Store

P = ParamSpec("P")
Result = TypeVar("Result")

MOST_WAITING = 64
"""Questions that are answered or wait for it; one more is turned away at once instead of being answered too late."""


class Busy(Exception):
    """Too much is waiting already, or the bot is about to stop."""


class Desk:
    """Runs plain functions in threads and counts them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers = ThreadPoolExecutor(settings.vram_bot_workers, "answer")
        self._shelf = ThreadPoolExecutor(1, "store")
        self._store: Store | None = None
        self._waiting = 0

    async def open(self) -> None:
        """Open the store, once."""
        if self._store is None:
            path = Path(self._settings.vram_bot_data) / "bot.db"
            self._store = await self._on_shelf(partial(Store, path, self._settings.vram_bot_keep_days))

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
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._shelf.shutdown(wait=False, cancel_futures=True)

    async def _on_shelf(self, function: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._shelf, function)
