"""A language model behind the bot on Discord."""

from types import SimpleNamespace

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra llm")

from bot.llm.helper import Helper
from bot.settings import Settings
from tests.bot.discord.messages import text
from tests.bot.llm.test_helper import LORA, UNSURE, TextPart, ToolCallPart, scripted


async def test_an_unsure_message_is_answered_by_way_of_the_model(lab: SimpleNamespace) -> None:
    model, seen = scripted(ToolCallPart("estimate", LORA), TextPart("The peak is 16.0 GiB."), TextPart("no"))
    lab.env.bot.helper = Helper(Settings(), model)
    await lab.ann.send(lab.channel, f"<@{lab.env.bot.user.id}> {UNSURE}")
    shown = text(lab.channel.last_message)
    assert "The peak is 16.0 GiB." in shown and "FITS" in shown and "Read by a language model as" in shown
    assert len(seen) == 2
    await lab.ann.send(lab.channel, f"<@{lab.env.bot.user.id}> and with qlora?")
    assert "QLoRA" in text(lab.channel.last_message) and len(seen) == 2
