"""``vram-bot prices``: what cards cost to rent and to buy."""

import logging
from pathlib import Path

import click

from bot import service
from bot.answer import Answer
from bot.cli import ANSWERED, WrongInput
from bot.cli.output import show
from bot.language import language_of
from bot.texts import say
from estimator.errors import EstimatorError


@click.command("prices", short_help="What cards cost to rent and to buy, with dates and sources.")
@click.option(
    "--gpu", "gpus", multiple=True, help="A card (H100, RTX 4090); several by repeating it. Else the usual ten."
)
@click.option("--region", default="", help="A part of the world (US, Europe, CN, Asia-Pacific) or a provider's region.")
@click.option("--spot/--on-demand", "spot", default=None, help="Only spot offers, or only those on demand; else both.")
@click.option("--currency", default="", help="USD or CNY; else VRAM_BOT_CURRENCY, else by the language.")
@click.option("--picture", type=click.Path(dir_okay=False, writable=True), help="Write the price picture (PNG) there.")
@click.option("--refresh", is_flag=True, help="Ask the price sources first.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the answer; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print the prices and offers as JSON.")
def command(
    gpus: tuple[str, ...], region: str, spot: bool | None, currency: str, picture: str | None, refresh: bool,
    lang: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Prices per GPU and hour by class of provider, the cheapest offers, and what the card costs to buy."""
    from bot.prices.current import current_market

    logging.getLogger("bot.prices").addHandler(logging.NullHandler())  # what failed is said below, once
    language = language_of("", lang)
    told = _refresh(language) if refresh else set()
    try:
        answer = service.prices(gpus, language, region, spot, currency)
    except EstimatorError as error:
        raise WrongInput(error.message_zh if language == "zh" else error.message) from None
    for sentence in (one for one in current_market().failed if one not in told):
        click.echo(say(language, "prices.table_fault", sentence=sentence), err=True)
    if picture:
        _draw(answer, picture)
    if as_json:
        click.echo(_json(answer.prices))
    else:
        show(answer.text)
    return ANSWERED


def _json(found: object) -> str:
    from pydantic import TypeAdapter

    from bot.prices.view import PriceAnswer

    return TypeAdapter(PriceAnswer).dump_json(found, indent=2).decode()  # type: ignore[arg-type]


def _refresh(lang: str) -> set[str]:
    """Ask the sources now, and say on standard error how each fared; the sentences that were said."""
    from contextlib import closing

    from bot.folders import data_folder
    from bot.prices.current import opened, unusable
    from bot.prices.refresh import refresh, sources_of
    from bot.settings import settings_from_environment

    settings, folder = settings_from_environment(lang), data_folder()
    try:
        sources = sources_of(settings.vram_bot_price_sources.split(), folder, settings.vram_bot_price_table)
        with closing(opened(folder)) as history:
            outcomes = refresh(sources, history)
    except OSError as error:
        raise WrongInput(say(lang, "prices.table_fault", sentence=unusable(folder, error))) from None
    for outcome in outcomes:
        click.echo(f"{outcome.source}: {outcome.sentence or outcome.status}", err=True)
    return {outcome.sentence for outcome in outcomes}


def _draw(answer: Answer, path: str) -> None:
    """The first card's picture as PNG."""
    from bot.answers.card.prices import price_picture

    picture = price_picture(answer)
    if picture is not None:
        try:
            Path(path).write_bytes(picture.png)
        except OSError as error:
            raise WrongInput(say(answer.lang, "cli.unwritable", path=path, detail=error.strerror)) from None
        click.echo(picture.alt, err=True)
