"""``vram-bot estimate``: a run given field by field, or one a line."""

from typing import Any

import click
from pydantic import ValidationError

from bot import service
from bot.cli import ANSWERED, WrongInput
from bot.cli.flags import options, run_fields
from bot.cli.lines import run_lines
from bot.cli.output import show
from bot.language import language_of
from bot.problems import message_of, problem_of
from bot.texts import say
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run


@click.command("estimate", short_help="Estimate a run given field by field.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the breakdown; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print an Estimate as JSON.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Read a Run a line (plus any id), print an Estimate a line.")
@click.option(
    "--explain", is_flag=True, help="Every block at the peak, every phase and every assumption, with its reason."
)
def command(lang: str | None, as_json: bool, as_lines: bool, explain: bool, **values: Any) -> int:
    """Estimate one run; the flags are the fields of Run, nested ones with dots."""
    if as_lines:
        return run_lines(_of_line)
    language = language_of("", lang)
    fields = run_fields(values)
    if "model" not in fields:
        raise WrongInput(say(language, "cli.no_model"))
    try:
        run = Run.model_validate(fields)
        fields = run.model_dump(exclude_unset=True)
        found = service.estimate(run, others=True, explain=explain)
    except (ValidationError, EstimatorError) as error:
        raise WrongInput(message_of(problem_of(error), language)) from None
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show(service.told(fields, found, language, explain))
    return ANSWERED


def _of_line(fields: dict[str, Any]) -> Estimate:
    name = fields.pop("id", None)
    found = service.estimate(Run.model_validate(fields))
    found.id = name
    return found


command.params.extend(options())
