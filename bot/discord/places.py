"""Who asks where, and what may be sent there."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import discord

from bot.discord.replies import Asker

NEEDED = discord.Permissions(
    view_channel=True, send_messages=True, send_messages_in_threads=True, attach_files=True, read_message_history=True
)
"""What the invitation link asks for."""


def asker_of(interaction: discord.Interaction[Any]) -> Asker:
    """The user and channel of an interaction."""
    may_attach = interaction.guild_id is None or interaction.app_permissions.attach_files
    return Asker(interaction.user.id, interaction.channel_id or 0, may_attach)


def asker_of_message(message: discord.Message) -> Asker | None:
    """The author and channel of a message; None where nothing may be sent."""
    may = _permissions(message)
    in_thread = isinstance(message.channel, discord.Thread)
    if not (may.view_channel and (may.send_messages_in_threads if in_thread else may.send_messages)):
        return None
    return Asker(message.author.id, message.channel.id, may.attach_files)


def sender_for(message: discord.Message) -> Callable[..., Awaitable[object]]:
    """Replies to a message; where its history may not be read, which a reply needs, writes to the channel."""
    if _permissions(message).read_message_history:
        return partial(message.reply, mention_author=False)
    return message.channel.send


def _permissions(message: discord.Message) -> discord.Permissions:
    if message.guild is None:
        return discord.Permissions.all()
    return message.channel.permissions_for(message.guild.me)
