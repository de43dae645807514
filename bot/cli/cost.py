"""``vram-bot cost``: time, bill, providers and owning of a run given field by field."""

from typing import Any

import click
from pydantic import ValidationError

from bot import service
from bot.cli import ANSWERED, WrongInput
from bot.cli.flags import options, run_fields
from bot.cli.output import show
from bot.language import language_of
from bot.problems import message_of, problem_of
from bot.texts import say
from estimator.economics import Economics
from estimator.errors import EstimatorError
from estimator.schema import Run

HELP = {
    "price": "Rental price per hour, in --currency; of one card unless --price_unit instance.",
    "price_unit": "gpu (one card) or instance (all cards together).",
    "currency": "Currency of prices, electricity and salary: USD, CNY, EUR …",
    "hours": "Wall hours that are billed, in place of the estimate.",
    "tokens_per_second": "Your own speed over all cards, in place of the estimate.",
    "mfu": "Your own share of the 16-bit peak, such as 0.4.",
    "buffer": "Share kept in reserve; 0.2 is 20 %.",
    "provider_class": "Whose prices the bill is made with: neocloud, marketplace, hyperscaler …",
    "rent_or_buy": "true: compare with owning the card.",
    "purchase_price": "Price of one card with its share of the server.",
    "utilisation": "Share of all hours that an owned card is used.",
    "electricity_price": "Per kWh, in --currency.",
    "country": "us, cn, eu or de: electricity, salaries and interest.",
}


@click.command("cost", short_help="What a run costs: time, bill, providers, rent or buy.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the answer; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print an Estimate with time and cost as JSON.")
def command(lang: str | None, as_json: bool, **values: Any) -> int:
    """Time and cost of one run; the flags are the fields of Run, and what may be said of money beside them.

    Without --gpu the cards that hold the run are ranked by cost; without --model a --gpu's prices are listed.
    """
    language = language_of("", lang)
    fields = _fields(values)
    if "model" not in fields and "gpu" not in fields:
        raise WrongInput(say(language, "cli.no_model"))
    try:
        fields = Run.model_validate({"model": "", **fields}).model_dump(exclude_unset=True)
        found = service.cost_of(fields, language)
    except (ValidationError, EstimatorError) as error:
        raise WrongInput(message_of(problem_of(error), language)) from None
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show(service.told(fields, found, language, question="cost"))
    return ANSWERED


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of Run, with the short names of its economics; a price on the command line is of one card."""
    fields = run_fields(values)
    said = {name: values[f"said_{name}"] for name in Economics.model_fields if values.get(f"said_{name}") is not None}
    if "price" in said:
        said.setdefault("price_unit", "gpu")
    economics = {**said, **fields.get("economics", {})}
    return {**fields, "economics": economics} if economics else fields


def _said_options() -> list[click.Option]:
    """``--utilisation`` for ``--economics.utilisation``, dashes allowed for underscores."""
    return [
        click.Option(
            [*dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")), f"said_{name}"],
            metavar="VALUE",
            help=HELP.get(name),
        )
        for name in Economics.model_fields
    ]


command.params.extend([*_said_options(), *options()])
