"""The first answer to an interaction, which Discord wants within three seconds."""

import logging
from typing import Any

import aiohttp
import discord

from bot.discord.errors import ALREADY_ANSWERED, TOO_LATE

log = logging.getLogger("bot.discord")
CUT = (aiohttp.ClientError, OSError, discord.DiscordServerError)
TRIES = 2


async def acknowledged(interaction: discord.Interaction[Any], private: bool) -> bool:
    """Say that an answer is being made; whether Discord took it. What came too late is not worked on at all.

    A connection that is cut leaves it open whether Discord heard: it is told again, and that it knows is as good.
    """
    for attempt in range(TRIES):
        try:
            await interaction.response.defer(ephemeral=private, thinking=True)
        except discord.NotFound as error:
            if error.code != TOO_LATE:
                raise
            log.warning("an interaction came too late to be answered")
            return False
        except discord.HTTPException as error:
            if error.code == ALREADY_ANSWERED:
                return True
            if not isinstance(error, CUT) or attempt + 1 == TRIES:
                raise
        except CUT:
            if attempt + 1 == TRIES:
                raise
        else:
            return True
    return False


async def send_privately(interaction: discord.Interaction[Any], sentence: str) -> None:
    """A sentence for the one who asked: the first answer, or a further one where there was one."""
    if not interaction.response.is_done():
        try:
            await interaction.response.send_message(sentence, ephemeral=True)
        except discord.HTTPException as error:
            if error.code != ALREADY_ANSWERED:  # of a first answer that was cut on its way back, only Discord knows
                raise
        else:
            return
    await interaction.followup.send(sentence, ephemeral=True)
