"""``vram-bot mcp``: the tools for any MCP client."""

import asyncio

import click

from bot.cli import ANSWERED, WrongInput
from bot.language import of_locale
from bot.texts import say


@click.command("mcp", short_help="Serve the tools to an MCP client.")
@click.option("--http", is_flag=True, help="Streamable HTTP at /mcp instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, with --http.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1, 65535), help="Port, with --http.")
def command(http: bool, host: str, port: int) -> int:
    """Serve estimate, downgrades, largest_that_fits, compare, cost, prices, diagnose and lookup over MCP.

    Whoever can reach --host may call them: there is no sign-in. They read nothing of this machine and change nothing.
    """
    try:
        from bot.tools.server import over_http, over_stdio
    except ImportError:
        raise WrongInput(say(of_locale(), "tools.needs_extra", extra="mcp")) from None
    if http:
        over_http(host, port)
    else:
        asyncio.run(over_stdio())
    return ANSWERED
