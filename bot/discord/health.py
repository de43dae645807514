"""Whether the bot lives and is ready, for what watches over it: two addresses on a side port, nothing else."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.settings import Settings

Ready = Callable[[], Awaitable[str]]
"""Why the bot is not ready; empty where it is."""


async def opened(settings: Settings, ready: Ready) -> web.AppRunner | None:
    """Serve ``/livez`` (the event loop turns) and ``/readyz`` (connected, and the store answers), where it is set.

    Raises OSError when the port is taken.
    """
    if not settings.vram_bot_health:
        return None
    host, _, port = settings.vram_bot_health.rpartition(":")
    app = web.Application()
    app.router.add_get("/livez", _alive)
    app.router.add_get("/readyz", _answering(ready))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    return runner


async def _alive(_: web.Request) -> web.Response:
    return web.Response(text="alive\n")


def _answering(ready: Ready) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        reason = await ready()
        return web.Response(status=503 if reason else 200, text=f"{reason or 'ready'}\n")

    return answer
