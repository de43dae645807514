"""/cost and /compare: time and money of a run, and cards or methods side by side."""

from typing import TYPE_CHECKING, Any

from discord import app_commands
from discord.app_commands import Choice, Range

from bot import service
from bot.discord import suggest
from bot.discord.commands import METHODS, MOST, answer
from bot.discord.translate import language_of_locale, text
from bot.intake.typed_costs import comparison_question, cost_question
from estimator.schema import MAX_TOKENS

if TYPE_CHECKING:
    import discord

    from bot.discord.client import VramBot

    Asked = discord.Interaction[VramBot]

OF_COST = (
    "model", "method", "gpu", "gpus", "samples", "epochs", "tokens", "length", "batch", "price", "hours", "buy",
    "utilisation", "country", "private",
)  # fmt: skip
OF_COMPARE = ("model", "cards", "methods", "samples", "epochs", "tokens", "length", "batch", "private")
COUNTRIES = [Choice(name=text(f"country.{name}"), value=name) for name in ("us", "cn", "eu", "de")]
LARGEST = 1e12


@app_commands.command(name=text("command.cost"), description=text("command.cost_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
@app_commands.rename(**{name: text(f"option.{name}") for name in OF_COST})
@app_commands.describe(**{name: text(f"option_does.{name}") for name in OF_COST})
@app_commands.choices(method=METHODS, country=COUNTRIES)
async def cost(
    interaction: "Asked",
    model: Range[str, 1, 6000] | None = None,
    method: str | None = None,
    gpu: Range[str, 1, 100] | None = None,
    gpus: Range[int, 1, MOST] | None = None,
    samples: Range[float, 1.0, LARGEST] | None = None,
    epochs: Range[float, 0.001, LARGEST] | None = None,
    tokens: Range[str, 1, 40] | None = None,
    length: Range[int, 1, MAX_TOKENS] | None = None,
    batch: Range[int, 1, MOST] | None = None,
    price: Range[float, 0.0, LARGEST] | None = None,
    hours: Range[float, 0.01, LARGEST] | None = None,
    buy: bool | None = None,
    utilisation: Range[float, 1.0, 100.0] | None = None,
    country: str | None = None,
    private: bool = False,
) -> None:
    """Time and cost of the run that the options describe, or of the card alone."""
    given = _given(interaction)
    lang = language_of_locale(interaction.locale)
    await answer(interaction, private, lambda: service.answered(cost_question(given), lang))


@app_commands.command(name=text("command.compare"), description=text("command.compare_does"))
@app_commands.allowed_installs(guilds=True, users=True)
@app_commands.allowed_contexts(guilds=True, dms=True, private_channels=True)
@app_commands.rename(**{name: text(f"option.{name}") for name in OF_COMPARE})
@app_commands.describe(**{name: text(f"option_does.{name}") for name in OF_COMPARE})
async def compare(
    interaction: "Asked",
    model: Range[str, 1, 6000],
    cards: Range[str, 1, 300] | None = None,
    methods: Range[str, 1, 100] | None = None,
    samples: Range[float, 1.0, LARGEST] | None = None,
    epochs: Range[float, 0.001, LARGEST] | None = None,
    tokens: Range[str, 1, 40] | None = None,
    length: Range[int, 1, MAX_TOKENS] | None = None,
    batch: Range[int, 1, MOST] | None = None,
    private: bool = False,
) -> None:
    """The same job on several cards, or in several ways."""
    given = _given(interaction)
    lang = language_of_locale(interaction.locale)
    await answer(interaction, private, lambda: service.answered(comparison_question(given), lang))


def _given(interaction: "Asked") -> dict[str, Any]:
    return {name: value for name, value in interaction.namespace if name != "private"}


@cost.autocomplete("model")
@compare.autocomplete("model")
async def _models(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one.label, value=one.value) for one in suggest.models(typed)]


@cost.autocomplete("gpu")
async def _gpus(interaction: "Asked", typed: str) -> list[Choice[str]]:
    return [Choice(name=one.label, value=one.value) for one in suggest.gpus(typed)]


COSTS: list[app_commands.Command[Any, ..., Any]] = [cost, compare]
