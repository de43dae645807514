"""The slash commands: each option in its own typed box, every text in English and Chinese."""

import typing
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands
from discord.app_commands import Choice, Range

from bot import service
from bot.answer import Answer
from bot.digest.ledger import Ledger
from bot.discord import suggest
from bot.discord.acknowledge import acknowledged, send_privately
from bot.discord.attachments import Files, read
from bot.discord.places import asker_of
from bot.discord.prices import price
from bot.discord.replies import reply, tell_unread
from bot.discord.translate import language_of_locale, text
from bot.intake.lexicon import lexicon
from bot.intake.typed import LAYOUTS, TASKS, typed_question
from bot.store import Store
from bot.texts import say
from estimator.schema import MAX_TOKENS, Method, Precision

if TYPE_CHECKING:
    from bot.discord.client import VramBot

    Asked = discord.Interaction[VramBot]

MOST = 1_000_000
OPTIONS = (
    "model", "method", "gpu", "gpus", "batch", "length", "precision", "quantisation", "framework", "checkpointing",
    "optimizer", "parallelism", "private",
)  # fmt: skip
MOST_CHOICES = 25
"""Discord takes no more for an option; the rarer ones are read from the model's name."""
FEW_WORDS = 8
"""Words beside a screenshot with which it still is all that a message says."""
HELP = {"en": "/help", "zh": "帮助"}


def _named(section: str, values: tuple[str, ...]) -> list[Choice[str]]:
    return [Choice(name=text(f"{section}.{value}"), value=value) for value in values]


def _plain(values: tuple[str, ...]) -> list[Choice[str]]:
    return [Choice(name=value, value=value) for value in values[:MOST_CHOICES]]


METHODS = [*_named("method", typing.get_args(Method)), *_named("task", TASKS)]
CHOICES = {
    "method": METHODS,
    "precision": _plain(typing.get_args(Precision)),
    "quantisation": _plain(lexicon().choices("weight_format")),
    "framework": _plain((*lexicon().choices("framework"), *lexicon().choices("engine"))),
    "checkpointing": _named("checkpointing", ("full", "none")),
    "optimizer": _plain(lexicon().choices("optimizer")),
}


@app_commands.command(name=text("command.vram"), description=text("command.vram_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
@app_commands.rename(**{name: text(f"option.{name}") for name in OPTIONS})
@app_commands.describe(**{name: text(f"option_does.{name}") for name in OPTIONS})
@app_commands.choices(**CHOICES)
async def vram(
    interaction: "Asked",
    model: Range[str, 1, 6000],
    method: str | None = None,
    gpu: Range[str, 1, 100] | None = None,
    gpus: Range[int, 1, MOST] | None = None,
    batch: Range[int, 1, MOST] | None = None,
    length: Range[int, 1, MAX_TOKENS] | None = None,
    precision: str | None = None,
    quantisation: str | None = None,
    framework: str | None = None,
    checkpointing: str | None = None,
    optimizer: str | None = None,
    parallelism: Range[str, 1, 100] | None = None,
    private: bool = False,
) -> None:
    """Estimate the run that the options describe."""
    given = {name: value for name, value in interaction.namespace if name != "private"}
    lang = language_of_locale(interaction.locale)
    await answer(interaction, private, lambda: service.answered(typed_question(given), lang))


async def answer(interaction: "Asked", private: bool, work: Callable[[], Answer]) -> None:
    """Acknowledge, then answer; a stop of the bot waits for it."""
    async with interaction.client.working():
        if await acknowledged(interaction, private):
            send = partial(interaction.followup.send, ephemeral=private)
            await reply(interaction.client.desk, asker_of(interaction), work, send)


@vram.autocomplete("model")
async def _models(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one.label, value=one.value) for one in suggest.models(typed)]


@vram.autocomplete("gpu")
async def _gpus(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one.label, value=one.value) for one in suggest.gpus(typed)]


@vram.autocomplete("parallelism")
async def _layouts(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one, value=one) for one in LAYOUTS if typed.lower().strip() in one]


@app_commands.command(name=text("command.help"), description=text("command.help_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
async def help_(interaction: "Asked") -> None:
    """Show what can be asked, to the one who asks."""
    lang = language_of_locale(interaction.locale)
    await answer(interaction, True, partial(service.ask, HELP[lang], lang=lang))


@app_commands.command(name=text("command.forget"), description=text("command.forget_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
async def forget(interaction: "Asked") -> None:
    """Delete everything that is kept of the one who asks."""
    lang = language_of_locale(interaction.locale)
    async with interaction.client.working():
        if not await acknowledged(interaction, private=True):
            return
        count = await interaction.client.desk.stored(Store.forget, interaction.user.id)
        count += await interaction.client.daily.stored(Ledger.forget, interaction.user.id)
        await send_privately(interaction, say(lang, "discord.forgotten", count=count))


@app_commands.context_menu(name=text("command.why"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
async def why(interaction: "Asked", message: discord.Message) -> None:
    """Say why the run that a message tells of failed; its files are read too."""
    lang = language_of_locale(interaction.locale)
    async with interaction.client.working():
        if await acknowledged(interaction, private=False):
            words, files = message.content, await read(message.attachments)
            send, asker = interaction.followup.send, asker_of(interaction)
            await reply(interaction.client.desk, asker, lambda: _why(words, files, lang), send)
            await tell_unread(files, lang, send)


def _why(words: str, files: Files, lang: str) -> Answer:
    if files.pictures and len(words.split()) < FEW_WORDS:
        return service.picture_declined(lang)
    return service.why("\n".join([words, *files.texts]), lang)


COMMANDS: list[app_commands.Command[Any, ..., Any] | app_commands.ContextMenu] = [vram, price, help_, forget, why]
