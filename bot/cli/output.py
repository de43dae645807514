"""Printing a reply: plain when piped, with a little colour on a terminal."""

import os
import sys

import click


def show(text: str, err: bool = False) -> None:
    """Print a reply to standard output, or to standard error when the input was wrong."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        click.echo(text, err=err)
        return
    from rich.console import Console  # a piped reply does without it

    from bot.cli.paint import painted

    Console(file=stream, highlight=False, soft_wrap=True).print(painted(text))
