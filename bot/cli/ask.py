"""``vram-bot ask``: one question, or one a line."""

from typing import Any

import click

from bot import service
from bot.answer import Answer
from bot.answers.quote import quoted
from bot.cli import ANSWERED, WRONG_INPUT, WrongInput
from bot.cli.asking import asked
from bot.cli.lines import BadLine, run_lines
from bot.cli.output import show
from bot.language import LANGUAGES, language_of
from bot.texts import say

FIELDS = ("id", "text", "history", "lang")


class _Question(click.Command):
    """A command whose words may begin with a minus: "-5b lora" is a question, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        texts = [one for one in args if one[:1] == "-" and one[1:2].isdigit()]
        rest = [one for one in args if one not in texts]
        return super().parse_args(ctx, [*rest, "--", *texts] if texts and "--" not in args else args)


@click.command("ask", cls=_Question, short_help="Answer a question about GPU memory.")
@click.argument("text", nargs=-1)
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), help="Language of the reply; else the text's, else the locale's."
)
@click.option("--json", "as_json", is_flag=True, help="Print an Answer as JSON.")
@click.option(
    "--jsonl", "as_lines", is_flag=True, help='Read {"id", "text", "history"?, "lang"?} lines, print an Answer a line.'
)
def command(text: tuple[str, ...], lang: str | None, as_json: bool, as_lines: bool) -> int:
    """Answer one chat message, such as "/vram model:0.5b method:lora gpu:8GB"."""
    if as_lines:
        return run_lines(lambda fields: _of_line(fields, lang))
    question = " ".join(text).strip()
    if not question:
        raise WrongInput(say(language_of("", lang), "cli.no_text_given"))
    answer = asked(question, lang=lang)
    if as_json:
        click.echo(answer.model_dump_json(by_alias=True, indent=2))
    elif answer.reply == "ignore":
        click.echo(say(answer.lang, "cli.ignored"), err=True)
    else:
        show(answer.text, err=is_wrong(answer))
    return WRONG_INPUT if is_wrong(answer) else ANSWERED


def is_wrong(answer: Answer) -> bool:
    """Whether the question holds a value that is impossible or unknown, or nothing of it could be estimated."""
    failed = bool(answer.estimates) and all(one.error for one in answer.estimates)
    unknown = answer.reply == "clarify" and not answer.missing
    return unknown or bool(answer.invalid) or failed


def _of_line(fields: dict[str, Any], lang: str | None) -> Answer:
    for name in fields:
        if name not in FIELDS:
            raise BadLine("cli.unknown_field", name, near=FIELDS, field=quoted(name))
    text, history, own = fields.get("text"), fields.get("history"), fields.get("lang")
    if not isinstance(text, str):
        raise BadLine("cli.no_text", "text")
    if history is not None and not (isinstance(history, list) and all(isinstance(one, str) for one in history)):
        raise BadLine("cli.bad_history", "history")
    if own is not None and own not in LANGUAGES:
        raise BadLine("cli.bad_lang", "lang", value=quoted(own, 40))
    answer = service.ask(text, history or [], own or lang)
    answer.id = fields.get("id")
    return answer
