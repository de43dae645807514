"""The bot as a process: where Discord is, signals, and how it ends."""

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.discord import comeback, health
from bot.discord.client import VramBot
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.llm.helper import Helper

log = logging.getLogger("bot.discord")
GRACE_SECONDS = 10.0
BAD_TOKEN = 4004
"""Close code of the gateway for a token that is no longer good."""


class WrongToken(Exception):
    """Discord does not know the token."""


class NoPlace(Exception):
    """Where /livez and /readyz should be served cannot be listened at."""


class Unreachable(Exception):
    """Discord cannot be reached."""


def point(settings: Settings) -> None:
    """Use other addresses than Discord's own where they are set: a rate-limit proxy, or a stand-in."""
    if settings.discord_api_base:
        Route.BASE = settings.discord_api_base
    if settings.discord_gateway_url:
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings.discord_gateway_url)
    if settings.discord_cdn_base:
        discord.Asset.BASE = settings.discord_cdn_base


async def serve(settings: Settings, token: str, helper: "Helper | None" = None) -> None:
    """Run until SIGTERM or SIGINT. Raises NoPlace, WrongToken and Unreachable."""
    point(settings)
    comeback.install()
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # there is no voice here to miss them
    bot, stop = VramBot(settings, helper=helper), asyncio.Event()
    _on_signals(stop)
    try:
        watched = await health.opened(settings, bot.unready)
    except OSError as error:
        raise NoPlace(error.strerror) from error
    running = asyncio.create_task(bot.start(token))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            log.info("stopping")
            await bot.wind_down(GRACE_SECONDS)
    finally:
        await bot.close()
        stopped.cancel()
        if watched is not None:
            await watched.cleanup()
    await _ended(running, asked=stop.is_set())


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: the interrupt arrives as an exception
            loop.add_signal_handler(number, stop.set)


async def _ended(running: asyncio.Task[None], asked: bool) -> None:
    """Wait for the client's end; what ended it matters unless it was asked to stop."""
    try:
        await running
    except discord.LoginFailure as error:
        raise WrongToken from error
    except discord.ConnectionClosed as error:
        if error.code == BAD_TOKEN:
            raise WrongToken from error
        raise Unreachable(f"the gateway closed with {error.code}") from error
    except (aiohttp.ClientError, OSError, discord.DiscordServerError, discord.GatewayNotFound) as error:
        if not asked:
            raise Unreachable(str(error) or type(error).__name__) from error
