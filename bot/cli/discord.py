"""``vram-bot discord``: the bot on Discord."""

import asyncio
import logging
import re
from tempfile import TemporaryFile

import click

from bot.cli import ANSWERED, OUR_FAULT, WrongInput
from bot.language import of_locale
from bot.llm.model import helper_of
from bot.settings import Settings, settings_from_environment
from bot.texts import say

TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
"""Discord's tokens of bots: the bot's id, a time and a signature, each in base64 for addresses."""


@click.command("discord", short_help="Run the bot on Discord.")
@click.option("--verbose", is_flag=True, help="Log what the Discord library does, too.")
def command(verbose: bool) -> int:
    """Run the bot until SIGTERM or Ctrl-C; DISCORD_TOKEN holds the application's token."""
    lang = of_locale()
    settings = settings_from_environment(lang)
    helper = helper_of(settings, lang)
    token = _token(settings, lang)
    _check_folder(settings, lang)
    from bot.discord.process import NoPlace, Unreachable, WrongToken, serve

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("discord").setLevel(logging.DEBUG if verbose else logging.INFO)
    try:
        asyncio.run(serve(settings, token, helper))
    except WrongToken:
        raise WrongInput(say(lang, "setting.wrong_token")) from None
    except NoPlace as error:
        raise WrongInput(say(lang, "setting.wrong", name="VRAM_BOT_HEALTH", why=error)) from None
    except Unreachable as error:
        click.echo(say(lang, "setting.unreachable", detail=error), err=True)
        return OUR_FAULT
    except Exception:
        logging.getLogger("bot.discord").exception("the bot ended by a fault of ours")
        return OUR_FAULT
    return ANSWERED


def _check_folder(settings: Settings, lang: str) -> None:
    """Without a folder to write in, the bot would only fail once it is connected."""
    try:
        settings.vram_bot_data.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=settings.vram_bot_data):
            pass
    except OSError as error:
        raise WrongInput(say(lang, "setting.wrong", name="VRAM_BOT_DATA", why=error.strerror)) from None


def _token(settings: Settings, lang: str) -> str:
    """The token. What cannot be one is not sent to Discord; another address's tokens may look as they like."""
    token = settings.discord_token.get_secret_value().strip() if settings.discord_token else ""
    if not token:
        raise WrongInput(say(lang, "setting.no_token"))
    if settings.discord_api_base is None and not TOKEN.fullmatch(token):
        raise WrongInput(say(lang, "setting.no_such_token"))
    return token
