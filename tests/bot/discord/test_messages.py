"""Mentions, replies and direct messages, without any privileged intent."""

from types import SimpleNamespace
from typing import Any

import discord
import pytest

from tests.bot.discord.messages import text

ALL = discord.PermissionOverwrite(send_messages=True, read_message_history=True, view_channel=True)


def answers(lab: SimpleNamespace) -> list[discord.Message]:
    return [one for one in lab.channel.history() if one.author.id == lab.env.bot.user.id]


def at(lab: SimpleNamespace, question: str) -> str:
    return f"<@{lab.env.bot.user.id}> {question}"


def test_no_privileged_intent_is_asked_for(simcord_bot: discord.Client) -> None:
    intents = simcord_bot.intents
    assert not (intents.message_content or intents.members or intents.presences)


async def test_a_mention_is_answered_in_the_language_of_the_question(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, "can I fine-tune llama3 8b with lora on a 3090?"))
    assert "FITS" in text(lab.channel.last_message)
    await lab.ann.send(lab.channel, at(lab, "一张24G的4090能跑32b吗"))
    assert "放不下" in text(lab.channel.last_message)
    assert len(answers(lab)) == 2


async def test_nothing_is_said_to_talk_among_others(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, "can I fine-tune llama3 8b with lora on a 3090?")
    await lab.ann.send(lab.channel, at(lab, "thanks, good bot"))
    assert answers(lab) == []


async def test_a_bare_mention_gets_the_help(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, ""))
    assert "/vram" in text(answers(lab)[-1])


async def test_a_reply_to_a_card_goes_on_from_it(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"))
    card = lab.channel.last_message
    await lab.ann.send(lab.channel, "and with qlora?", reply_to=card)
    assert "QLoRA" in text(lab.channel.last_message) and "RTX 3090" in text(lab.channel.last_message)


async def test_conversations_are_apart(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"))
    await lab.wei.send(lab.channel, at(lab, "qlora?"))
    assert "Meta-Llama" not in text(lab.channel.last_message)


async def test_a_direct_message_needs_no_mention(lab: SimpleNamespace) -> None:
    await lab.wei.send_dm("一张3090能lora微调llama3 8b吗")
    await lab.wei.send_dm("换成qlora呢")
    last = lab.wei.user.dm_channel.last_message
    assert "QLoRA" in text(last) and "3090" in text(last)


@pytest.mark.parametrize(
    "hostile",
    [
        "@everyone @here <@&1> <@2> can 7b fit 8GB?",
        "/vram model:`@everyone` gpu:8GB",
        "/vram model:[free nitro](https://evil.example) gpu:<@123>",
        "/vram model:\u202e\u2066zzz gpu:8GB foo:||x|| batch:-5",
        "# 7b lora 8GB \n> ```ansi\n@everyone```",
        "7b " + "\u0000\u200b" * 500 + " lora 24GB",
        "能跑 " + "🤖" * 700 + " 7b 8GB 吗？",
    ],
)
async def test_hostile_words_ping_nobody_and_forge_nothing(lab: SimpleNamespace, hostile: str) -> None:
    await lab.ann.send(lab.channel, at(lab, hostile)[:2000])
    sent = [one for one in lab.env.http_requests if one.method == "POST" and one.path.endswith("/messages")]
    for request in sent:
        assert request.json["allowed_mentions"] == {"parse": [], "replied_user": False}
    for message in answers(lab):
        shown = text(message)
        assert "@everyone" not in shown and "evil.example" not in shown and "\u202e" not in shown
        assert not message.mentions and not message.mention_everyone


def channel_without(lab: SimpleNamespace, **permissions: bool) -> Any:
    """A channel where the bot lacks a permission that people have."""
    people = lab.guild.create_role("People", permissions=discord.Permissions.all_channel())
    denied = discord.PermissionOverwrite(**permissions)
    channel = lab.guild.create_text_channel("other", overwrites={lab.guild.default_role: denied, people: ALL})
    writer = lab.guild.add_member(lab.env.create_user("mel"), roles=[people])
    known = lab.env.bot.get_channel(channel.id)
    may = known.permissions_for(known.guild.me)
    assert not any(getattr(may, name) for name in permissions)
    return SimpleNamespace(channel=channel, writer=writer)


async def test_where_the_bot_may_not_write_nothing_is_tried(lab: SimpleNamespace) -> None:
    other = channel_without(lab, send_messages=False)
    before = len(lab.env.http_requests)
    await other.writer.send(other.channel, at(lab, "llama3 8b lora 3090"))
    assert lab.env.http_requests[before:] == []


async def test_where_history_may_not_be_read_the_answer_is_no_reply(lab: SimpleNamespace) -> None:
    other = channel_without(lab, read_message_history=False)
    await other.writer.send(other.channel, at(lab, "llama3 8b lora 3090"))
    sent = lab.env.http_requests[-1].json
    assert sent["components"] and "message_reference" not in sent


async def test_a_message_that_comes_twice_is_answered_once(lab: SimpleNamespace) -> None:
    sent = await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"))
    lab.env.bot.dispatch("message", sent)
    await lab.env.settle()
    assert len(answers(lab)) == 1


async def test_who_writes_too_often_is_told_once(lab: SimpleNamespace) -> None:
    for _ in range(15):
        await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"))
    assert sum("ask again" in one.content for one in answers(lab)) == 1
    assert len(answers(lab)) == 13


async def test_a_fault_of_ours_is_told_with_a_number(lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("bot.service.ask", broken)
    await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"))
    assert "Incident " in answers(lab)[-1].content and "secret" not in answers(lab)[-1].content
