"""A question on the terminal: the grammar's reply, or a language model's where one is set and the grammar is unsure."""

import os
from typing import TYPE_CHECKING

from bot import service
from bot.answer import Answer
from bot.intake.understand import understand
from bot.llm.unsure import is_unsure

if TYPE_CHECKING:
    import asyncio

    from bot.llm.helper import Helper
    from bot.settings import Settings


def asked(text: str, history: list[str] | None = None, lang: str | None = None) -> Answer:
    """The reply to a message after others."""
    first = service.ask(text, history, lang)
    if not os.environ.get("VRAM_BOT_LLM"):
        return first
    from bot.settings import settings_from_environment  # most questions need none

    settings = settings_from_environment(first.lang)
    if settings.vram_bot_llm_when != "always" and not is_unsure(text, first):
        return first
    helper, runner = _helper(settings, first.lang)
    if helper is None:
        return first
    before = understand(history[-1], history[:-1]).spoken if history else []
    return runner.run(helper.answer(text, first.lang, first, before))


_made: "list[tuple[Helper | None, asyncio.Runner]]" = []
"""Who asks the model, and the loop in which its connections live."""


def _helper(settings: "Settings", lang: str) -> "tuple[Helper | None, asyncio.Runner]":
    import asyncio

    from bot.llm.model import helper_of

    if not _made:
        _made.append((helper_of(settings, lang), asyncio.Runner()))
    return _made[0]
