"""A question on the terminal: the grammar's reply, or a language model's where one is set and the grammar is unsure."""

import asyncio
import os
from functools import cache
from typing import TYPE_CHECKING

from bot import service
from bot.answer import Answer
from bot.cli import WrongInput
from bot.intake.understand import understand

if TYPE_CHECKING:
    from bot.llm.helper import Helper


def asked(text: str, history: list[str] | None = None, lang: str | None = None) -> Answer:
    """The reply to a message after others."""
    first = service.ask(text, history, lang)
    if not os.environ.get("VRAM_BOT_LLM"):
        return first
    helper, runner = _helper(first.lang)
    if helper is None or not helper.wanted(text, first):
        return first
    before = understand(history[-1], history[:-1]).spoken if history else []
    return runner.run(helper.answer(text, first.lang, first, before))


@cache
def _helper(lang: str) -> "tuple[Helper | None, asyncio.Runner]":
    """Who asks the model, and the loop in which its connections live."""
    from bot.llm.model import helper_of
    from bot.settings import BadSettings, settings_from_environment

    try:
        return helper_of(settings_from_environment(lang), lang), asyncio.Runner()
    except BadSettings as error:
        raise WrongInput(str(error)) from None
