"""What people are told when something goes wrong: one sentence, and a number by which the log knows it."""

import logging
import secrets
from collections.abc import Awaitable, Callable

import discord
from discord import app_commands

from bot.discord.desk import Busy
from bot.texts import say

log = logging.getLogger("bot.discord")

TOO_LATE = 10062
ALREADY_ANSWERED = 40060
GONE = frozenset({10003, 10004, 10008, 10015, 50001, 50013, 50027, TOO_LATE})
"""Codes of Discord for a channel, message, token or permission that is no longer there: nobody can be told."""

Tell = Callable[[str], Awaitable[object]]


def sentence_of(error: BaseException, lang: str, where: str) -> str | None:
    """What to say about an error, which is logged; None when there is nobody left to tell."""
    cause = error.original if isinstance(error, app_commands.CommandInvokeError) else error
    if isinstance(cause, Busy):
        log.warning("%s: turned away, too much is waiting", where)
        return say(lang, "discord.busy")
    if isinstance(cause, discord.HTTPException) and cause.code in GONE:
        log.warning("%s: Discord says %s, nothing was sent", where, cause.code)
        return None
    incident = secrets.token_hex(4)
    log.error("%s: incident %s", where, incident, exc_info=cause)
    return say(lang, "discord.fault", incident=incident)


async def tell(error: BaseException, lang: str, where: str, send: Tell) -> None:
    """Say what went wrong with ``send``; that this fails too is only logged."""
    sentence = sentence_of(error, lang, where)
    if sentence is None:
        return
    try:
        await send(sentence)
    except (discord.HTTPException, OSError) as failure:
        log.warning("%s: the error could not be told: %s", where, type(failure).__name__)
