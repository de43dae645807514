"""Names and descriptions of commands in the languages of the texts, and the language of a locale of Discord."""

import discord
from discord import app_commands

from bot.texts import say

LANGUAGES = {discord.Locale.chinese: "zh"}
"""Locales that get texts of their own; all others see the English ones."""


def text(key: str) -> app_commands.locale_str:
    """The English text under a key, with the others to be found by it."""
    return app_commands.locale_str(say("en", key), key=key)


def language_of_locale(locale: discord.Locale | str | None) -> str:
    """Chinese for both Chinese locales, else English."""
    return "zh" if str(locale or "").lower().startswith("zh") else "en"


class Words(app_commands.Translator):
    """Looks a command's texts up by the key that ``text`` left with them."""

    async def translate(
        self,
        string: app_commands.locale_str,
        locale: discord.Locale,
        context: app_commands.TranslationContextTypes,
    ) -> str | None:
        """The text of a locale, None where it has none of its own."""
        key = string.extras.get("key")
        return say(LANGUAGES[locale], key) if key and locale in LANGUAGES else None
