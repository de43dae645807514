"""``vram-bot read``: a config file, launch line or serving command as a partial run."""

import sys
from pathlib import Path
from typing import Any

import click

from bot import service
from bot.answers.quote import quoted
from bot.cli import ANSWERED, WRONG_INPUT, WrongInput
from bot.cli.lines import BadLine, run_lines
from bot.cli.output import show
from bot.language import language_of
from bot.reading.entries import LONGEST_TEXT
from bot.reading.read import Reading
from bot.texts import say

FIELDS = ("id", "text")


@click.command("read", short_help="Read a config file, launch line or serving command.")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the text; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print the reading as JSON.")
@click.option("--jsonl", "as_lines", is_flag=True, help='Read {"id", "text"} lines, print a reading a line.')
def command(file: Path | None, lang: str | None, as_json: bool, as_lines: bool) -> int:
    """Say what FILE (or standard input, -) fixes of a run: nothing in it is run or opened."""
    if as_lines:
        return run_lines(_of_line)
    language = language_of("", lang)
    reading = service.read(_text_of(file, language))
    if as_json:
        click.echo(reading.model_dump_json(by_alias=True, indent=2))
    else:
        show(service.told_reading(reading, language), err=reading.error is not None)
    return WRONG_INPUT if reading.error else ANSWERED


def _text_of(file: Path | None, lang: str) -> str:
    """At most a little more than is read, so that a huge file is refused without being held."""
    if file is None and sys.stdin.isatty():
        raise WrongInput(say(lang, "read.no_input"))
    try:
        if file is None or str(file) == "-":
            return sys.stdin.buffer.read(LONGEST_TEXT + 1).decode("utf-8", "replace")
        with file.open("rb") as stream:
            return stream.read(LONGEST_TEXT + 1).decode("utf-8", "replace")
    except OSError as error:
        raise WrongInput(say(lang, "read.no_file", name=quoted(file), detail=error.strerror or error)) from None


def _of_line(fields: dict[str, Any]) -> Reading:
    for name in fields:
        if name not in FIELDS:
            raise BadLine("cli.unknown_field", name, near=FIELDS, field=quoted(name))
    text = fields.get("text")
    if not isinstance(text, str):
        raise BadLine("cli.no_text", "text")
    reading = service.read(text)
    reading.id = fields.get("id")
    return reading
