"""The real process on a real socket: a stand-in for Discord on loopback that checks every request it gets."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from tests.standin import Standin
from tests.standin.actors import Interaction
from tests.standin.limits import check_message, walk
from tests.standin.openapi import Spec

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "tests" / "standin" / "schema" / "discord-openapi.json"
PATIENCE = 30.0
"""Seconds for a process to start or to stop on a busy machine; nothing sleeps for so long."""


async def launched(environment: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "discord", env={**os.environ, "LC_ALL": "C.UTF-8", **environment}, cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str]:
    _, log = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    return process.returncode, log.decode()


class Scene(SimpleNamespace):
    """A server with a Chinese speaker, and the environment for the bot's process."""

    @asynccontextmanager
    async def bot(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """The bot as a process until the block ends, then stopped as a service manager does it."""
        sessions = len(self.standin.gateway.identifies)
        process = await launched(self.environment)
        async with asyncio.timeout(PATIENCE):
            while len(self.standin.gateway.identifies) == sessions:
                self.standin.gateway._changed.clear()
                await self.standin.gateway._changed.wait()
        try:
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            status, log = await ended(process)
        assert status == 0, log
        assert "Traceback" not in log, log

    async def answers(self, channel: Any, number: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.standin.until(
            lambda: len(channel.bot_messages()) >= number and channel.bot_messages(), PATIENCE
        )
        return found


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with Standin(spec=Spec(SCHEMA)) as standin:
        world = standin.world
        guild = world.guild("Lab")
        channel = world.text_channel(guild)
        wei, ann = world.user("wei", locale="zh-CN"), world.user("ann")
        for user in (wei, ann):
            world.join(guild, user)
        yield Scene(
            standin=standin,
            world=world,
            channel=channel,
            wei=standin.actor(wei, channel),
            ann=standin.actor(ann, channel),
            environment={**standin.environ(), "DISCORD_TOKEN": world.token, "VRAM_BOT_DATA": str(tmp_path)},
        )
        assert standin.spec_errors == []
        for call in standin.calls:
            assert call.status < 400, (call.method, call.path, call.status, call.body)
            if call.body and "messages" in call.path:
                assert check_message(call.body, list(call.files)) == []


def ids(message: dict[str, Any], kind: str) -> list[str]:
    every = [part["custom_id"] for part in walk(message["components"]) if part.get("custom_id")]
    return [one for one in every if one.endswith(f":{kind}")]


def text(message: dict[str, Any]) -> str:
    return "\n".join([message["content"], *(part.get("content") or "" for part in walk(message["components"]))])


async def test_questions_of_every_kind_are_answered_then_it_stops_cleanly(scene: Scene) -> None:
    async with scene.bot():
        card = await scene.wei.slash("vram", model="0.5b", method="lora", gpu="8GB", timeout=PATIENCE)
        assert card.deferred and card.acknowledged_after < 3 and "放得下" in card.text
        picture = card.messages[0]["attachments"][0]
        assert scene.world.files[picture["id"]].startswith(b"\x89PNG") and "1.1" in picture["description"]

        choices = await scene.ann.autocomplete("vram", "model", "qwen2.5 7")
        assert {"Qwen/Qwen2.5-7B"} <= {one["value"] for one in choices}

        await scene.ann.say("nobody asked the bot: 7b lora 8GB?")
        await scene.ann.say(f"<@{scene.world.bot.id}> 一张3090能lora微调llama3 8b吗 @everyone")
        (_, reply) = await scene.answers(scene.channel, 2)
        assert "Meta-Llama-3-8B" in text(reply) and "放得下" in text(reply) and reply["_pings"] == []

        direct = scene.world.dm(scene.ann.user)
        await scene.standin.actor(scene.ann.user, direct).say("qwen2.5-7b qlora 24GB seq 4k")
        (answer,) = await scene.answers(direct, 1)
        assert "FITS" in text(answer)


async def test_buttons_and_conversations_outlive_the_process(scene: Scene) -> None:
    async with scene.bot():
        card = await scene.ann.slash("vram", model="llama3 8b", method="lora", gpu="RTX 3090", timeout=PATIENCE)
    message = card.messages[0]
    async with scene.bot():
        other = await scene.ann.click(message, ids(message, "what_if")[0], timeout=PATIENCE)
        await answered(scene, other)
        assert "17.2 GiB" in other.text and not other.ephemeral
        foreign = await scene.wei.click(message, ids(message, "math")[0], timeout=PATIENCE)
        await answered(scene, foreign)
        assert foreign.ephemeral and "8,030,261,248" in foreign.text
        await scene.ann.say(f"<@{scene.world.bot.id}> and with qlora?")
        assert "QLoRA" in text((await scene.answers(scene.channel, 4))[-1])
    assert scene.standin.command_writes[""] == 3, "each command was registered once"
    assert len(scene.standin.sent("PUT", "/commands$")) == 1


async def answered(scene: Scene, interaction: Interaction) -> None:
    await scene.standin.until(lambda: interaction.answered, PATIENCE)


async def test_a_dropped_socket_is_resumed_and_nothing_is_lost(scene: Scene) -> None:
    async with scene.bot():
        await scene.standin.gateway.drop()
        await scene.ann.say(f"<@{scene.world.bot.id}> llama3 8b lora 3090")
        (reply,) = await scene.answers(scene.channel, 1)
        assert "FITS" in text(reply)
        assert len(scene.standin.gateway.resumes) == 1 and len(scene.standin.gateway.identifies) == 1


async def test_many_at_once_are_all_acknowledged_in_time(scene: Scene) -> None:
    guild = scene.world.guilds[scene.channel.guild_id]
    people = [scene.world.user(f"user{number}") for number in range(30)]
    for person in people:
        scene.world.join(guild, person)
    async with scene.bot():
        asked = [
            scene.standin.actor(person, scene.channel).slash(
                "vram", model="7b", method="qlora", gpu="24GB", timeout=PATIENCE
            )
            for person in people
        ]
        answers = await asyncio.gather(*asked)
    assert max(one.acknowledged_after for one in answers) < 3
    assert all("FITS" in one.text for one in answers)


async def test_a_question_under_way_is_answered_before_it_stops(scene: Scene) -> None:
    async with scene.bot() as process:
        asked = asyncio.create_task(
            scene.ann.slash("vram", model="70b", method="full", gpu="H100 SXM5 80GB", timeout=PATIENCE)
        )
        await scene.standin.until(lambda: scene.standin.sent("POST", "/callback$"), PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert "Llama" in (await asked).text


async def test_a_cut_acknowledgement_is_tried_again(scene: Scene) -> None:
    async with scene.bot():
        scene.standin.fail("POST", r"/callback$", status=0)
        answer = await scene.ann.slash("vram", model="0.5b", method="lora", gpu="8GB", timeout=PATIENCE)
        assert "FITS" in answer.text
    cut = [call for call in scene.standin.calls if call.status == 500]
    assert len(cut) == 1
    scene.standin.calls.remove(cut[0])


async def test_what_comes_too_late_is_left_alone(scene: Scene) -> None:
    async with scene.bot():
        interaction = await scene.ann.slash("vram", model="0.5b", gpu="8GB", wait=False)
        interaction.created -= 3.5
        await scene.standin.until(lambda: scene.standin.sent("POST", "/callback$"), PATIENCE)
        await scene.wei.slash("help", timeout=PATIENCE)
    (late, _) = scene.standin.sent("POST", "/callback$")
    assert late.status == 404 and interaction.kind is None and interaction.messages == []
    scene.standin.calls.remove(late)


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"DISCORD_TOKEN": ""}, 2, "DISCORD_TOKEN is not set"),
        ({"DISCORD_TOKEN": "wrong.token"}, 2, "does not accept DISCORD_TOKEN"),
        ({"DISCORD_API_BASE": "localhost"}, 2, "DISCORD_API_BASE must begin with"),
        ({"DISCORD_API_BASE": "http://127.0.0.1:9/api"}, 1, "cannot be reached"),
    ],
)
async def test_a_start_that_cannot_work_ends_with_one_sentence(
    scene: Scene, changes: dict[str, str], status: int, said: str
) -> None:
    code, log = await ended(await launched({**scene.environment, **changes}))
    scene.standin.calls.clear()
    assert code == status, log
    assert re.search(said, log) and "Traceback" not in log and "wrong.token" not in log
