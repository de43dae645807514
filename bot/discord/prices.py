"""``/price``: what a card costs."""

from functools import partial
from typing import TYPE_CHECKING

import discord
from discord import app_commands
from discord.app_commands import Choice, Range

from bot import service
from bot.answer import Answer
from bot.discord import suggest
from bot.discord.acknowledge import acknowledged, send_privately
from bot.discord.places import asker_of
from bot.discord.replies import reply
from bot.discord.translate import language_of_locale, text
from estimator.errors import EstimatorError

if TYPE_CHECKING:
    from bot.discord.client import VramBot

    Asked = discord.Interaction[VramBot]

OPTIONS = ("gpu", "region", "spot", "currency", "private")
CURRENCIES = [Choice(name=one, value=one) for one in ("USD", "CNY")]


@app_commands.command(name=text("command.price"), description=text("command.price_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
@app_commands.rename(**{name: text(f"option.{name}") for name in OPTIONS})
@app_commands.describe(**{name: text(f"option_does.{name}") for name in OPTIONS})
@app_commands.choices(currency=CURRENCIES)
async def price(
    interaction: "Asked",
    gpu: Range[str, 1, 100] | None = None,
    region: Range[str, 1, 40] | None = None,
    spot: bool | None = None,
    currency: str | None = None,
    private: bool = False,
) -> None:
    """Tell what a card costs to rent and to buy; without one, what the usual ten do."""
    lang = language_of_locale(interaction.locale)
    async with interaction.client.working():
        if not await acknowledged(interaction, private):
            return
        ask = partial(service.prices, [gpu] if gpu else [], lang, region or "", spot, currency or "")
        try:
            answer: Answer = await interaction.client.desk.work(ask)
        except EstimatorError as error:
            await send_privately(interaction, error.message_zh if lang == "zh" else error.message)
            return
        send = partial(interaction.followup.send, ephemeral=private)
        await reply(interaction.client.desk, asker_of(interaction), lambda: answer, send)


@price.autocomplete("gpu")
async def _gpus(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one.label, value=one.value) for one in suggest.gpus(typed)]
