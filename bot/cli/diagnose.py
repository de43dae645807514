"""``vram-bot diagnose``: why a run failed, from its log."""

import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from bot import service
from bot.answers.quote import quoted
from bot.cli import ANSWERED, WrongInput
from bot.cli.lines import BadLine, run_lines
from bot.cli.output import show
from bot.language import LANGUAGES, of_locale
from bot.texts import say
from knowledge.diagnosis import Diagnosis
from knowledge.logs.text import HEAD

FIELDS = ("id", "text", "lang")
MOST_READ = 32 * 2**20
"""Bytes of a file that are read: its beginning, and from its end."""


@click.command("diagnose", short_help="Say why a run went out of memory, from its log.")
@click.argument("file", required=False, default="-")
@click.option("--lang", type=click.Choice(LANGUAGES), help="Language of the reply; else the text's.")
@click.option("--json", "as_json", is_flag=True, help="Print a Diagnosis as JSON.")
@click.option("--jsonl", "as_lines", is_flag=True, help='Read {"id", "text"} lines, print a Diagnosis a line.')
def command(file: str, lang: str | None, as_json: bool, as_lines: bool) -> int:
    """Read a log, traceback or report from FILE ("-": standard input) and say what went wrong and what helps."""
    if as_lines:
        return run_lines(lambda fields: _of_line(fields, lang))
    text = _text_of(file)
    if not text.strip():
        raise WrongInput(say(lang or of_locale(), "diagnose.nothing"))
    found = service.diagnose(text, lang)
    if as_json:
        click.echo(found.model_dump_json(by_alias=True, indent=2))
    else:
        show(found.text)
    return ANSWERED


def _text_of(file: str) -> str:
    if file == "-":
        return "" if sys.stdin.isatty() else _ends_of(sys.stdin.buffer.read(MOST_READ))
    try:
        with Path(file).open("rb") as stream:
            return _ends_of(_read(stream))
    except OSError as error:
        raise WrongInput(say(of_locale(), "diagnose.unreadable", file=quoted(file), detail=error.strerror)) from None


def _read(stream: BinaryIO) -> bytes:
    """The whole file, or of a very large one its beginning and its end."""
    size = stream.seek(0, 2)
    stream.seek(0)
    if size <= MOST_READ:
        return stream.read()
    head = stream.read(HEAD)
    stream.seek(size - MOST_READ + HEAD)
    return head + b"\n" + stream.read()


def _ends_of(raw: bytes) -> str:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(encoding, errors="replace")


def _of_line(fields: dict[str, Any], lang: str | None) -> Diagnosis:
    for name in fields:
        if name not in FIELDS:
            raise BadLine("cli.unknown_field", name, near=FIELDS, field=quoted(name))
    text, own = fields.get("text"), fields.get("lang")
    if not isinstance(text, str):
        raise BadLine("cli.no_text", "text")
    if own is not None and own not in LANGUAGES:
        raise BadLine("cli.bad_lang", "lang", value=quoted(own, 40))
    found = service.diagnose(text, own or lang)
    found.id = fields.get("id")
    return found
