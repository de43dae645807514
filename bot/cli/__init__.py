"""The command line: each command in its own module, imported when it is called."""

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from bot.language import of_locale
from bot.texts import say

COMMANDS = {
    "ask": "bot.cli.ask",
    "chat": "bot.cli.chat",
    "diagnose": "bot.cli.diagnose",
    "estimate": "bot.cli.estimate",
    "prices": "bot.cli.prices",
    "read": "bot.cli.read",
    "cost": "bot.cli.cost",
    "trace": "bot.cli.trace",
    "digest": "bot.cli.digest",
    "discord": "bot.cli.discord",
    "mcp": "bot.cli.mcp",
}

ANSWERED, OUR_FAULT, WRONG_INPUT = 0, 1, 2


class WrongInput(click.ClickException):
    """Bad input: one sentence for standard error, and exit status 2."""

    exit_code = WRONG_INPUT


class _Commands(click.Group):
    """Looks commands up without importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has enough, such as ``head``, ends it quietly, which click calls a fault."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ANSWERED
        return status


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vram-bot")
def cli() -> None:
    """How much GPU memory a language model needs: training, inference and serving, byte by byte."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(_status(arguments))


def _status(arguments: list[str] | None) -> int:
    try:
        status = cli.main(arguments, prog_name="vram-bot", standalone_mode=False)
    except click.ClickException as error:
        click.echo(_one_sentence(error), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        if os.environ.get("VRAM_BOT_DEBUG"):
            raise
        click.echo(say(of_locale(), "cli.fault", detail=f"{type(error).__name__}: {error}"), err=True)
        return OUR_FAULT
    return status if isinstance(status, int) else ANSWERED


def _one_sentence(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        from bot.problems import hint

        nearest = hint(
            of_locale(), error.option_name.lstrip("-"), [name.lstrip("-") for name in error.possibilities or []]
        )
        return say(of_locale(), "cli.unknown_option", field=error.option_name.lstrip("-"), hint=nearest)
    return error.format_message()
