"""The command tree: who may ask now, one place for errors, and registering commands only when they changed."""

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands

from bot.discord.acknowledge import send_privately
from bot.discord.errors import tell
from bot.discord.translate import language_of_locale
from bot.store import Store

if TYPE_CHECKING:
    from bot.discord.client import VramBot

log = logging.getLogger("bot.discord")


class Tree(app_commands.CommandTree["VramBot"]):
    """Commands of the bot."""

    async def interaction_check(self, interaction: "discord.Interaction[VramBot]", /) -> bool:
        """Whether the asker may ask now; who must wait is told privately. Autocompletion is always answered."""
        if interaction.type is not discord.InteractionType.application_command:
            return True
        return await interaction.client.may_ask(interaction)

    async def on_error(
        self, interaction: "discord.Interaction[VramBot]", error: app_commands.AppCommandError, /
    ) -> None:
        """One sentence for the asker, the rest for the log; a failed suggestion only leaves the list empty."""
        where = f"/{interaction.command.qualified_name}" if interaction.command else "a command"
        if interaction.type is discord.InteractionType.autocomplete:
            log.error("suggestions of %s failed", where, exc_info=error)
            return
        lang = language_of_locale(interaction.locale)
        await tell(error, lang, where, lambda sentence: send_privately(interaction, sentence))

    async def sync_if_changed(self) -> bool:
        """Register the commands with Discord unless these very ones were registered last; whether that was done."""
        desk, payload = self.client.desk, await self._payload()
        known = f"commands of {self.client.application_id}"
        digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
        if await desk.stored(Store.note, known) == digest:
            return False
        try:
            await self.sync()
        except discord.HTTPException as error:
            log.warning("the commands could not be registered, the bot runs with the old ones: %s", error)
            return False
        await desk.stored(Store.keep_note, known, digest)
        return True

    async def _payload(self) -> list[dict[str, Any]]:
        translator = self.translator
        commands = self._get_all_commands()
        if translator is None:
            return [dict(command.to_dict(self)) for command in commands]
        return [dict(await command.get_translated_payload(self, translator)) for command in commands]
