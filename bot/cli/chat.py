"""``vram-bot chat``: a conversation; what is asked next builds on what was said before."""

import sys
from collections.abc import Iterator

import click

from bot.cli.asking import asked
from bot.cli.output import show
from bot.intake.understand import MOST_HISTORY
from bot.language import language_of
from bot.texts import say


@click.command("chat", short_help="A conversation that remembers the last run.")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), help="Language of the replies; else each text's, else the locale's."
)
def command(lang: str | None) -> None:
    """Talk; "and with 4-bit?" or "换成A100呢" go on from the question before."""
    click.echo(say(language_of("", lang), "cli.chat_start"), err=True)
    history: list[str] = []
    for text in _typed():
        answer = asked(text, history, lang)
        if answer.reply == "ignore":
            click.echo(say(answer.lang, "cli.ignored"), err=True)
            continue
        show(answer.text + "\n")
        history = [*history, text][-MOST_HISTORY:]


def _typed() -> Iterator[str]:
    """Lines until an empty one or the end."""
    while True:
        if sys.stdin.isatty():
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield line
