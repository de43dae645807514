"""Who asks where, and what may be sent there."""

from typing import Any

import discord

from bot.discord.replies import Asker


def asker_of(interaction: discord.Interaction[Any]) -> Asker:
    """The user and channel of an interaction."""
    may_attach = interaction.guild_id is None or interaction.app_permissions.attach_files
    return Asker(interaction.user.id, interaction.channel_id or 0, may_attach)


def asker_of_message(message: discord.Message) -> Asker | None:
    """The author and channel of a message; None where nothing may be sent."""
    if message.guild is None:
        return Asker(message.author.id, message.channel.id)
    may = message.channel.permissions_for(message.guild.me)
    in_thread = isinstance(message.channel, discord.Thread)
    if not (may.view_channel and (may.send_messages_in_threads if in_thread else may.send_messages)):
        return None
    return Asker(message.author.id, message.channel.id, may.attach_files)
