"""The real process on a real socket: a stand-in for Discord on loopback that checks every request it gets."""

import asyncio
import json
import os
import re
import signal
import socket
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
from tests.standin.server import Call

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "tests" / "standin" / "schema" / "discord-openapi.json"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
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
    """A channel of its own with an English and a Chinese speaker, and the environment for the bot's process."""

    @asynccontextmanager
    async def bot(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """The bot as a process until the block ends, then stopped as a service manager does it."""
        gateway = self.standin.gateway
        sessions = len(gateway.identifies)
        process = await launched(self.environment)
        over = asyncio.create_task(process.wait())
        async with asyncio.timeout(PATIENCE):
            while len(gateway.identifies) == sessions:
                gateway._changed.clear()
                change = asyncio.create_task(gateway._changed.wait())
                await asyncio.wait({change, over}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
                assert not over.done(), (await process.communicate())[1].decode()
        over.cancel()
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

    async def answered(self, interaction: Interaction) -> str:
        await self.standin.until(lambda: interaction.answered, PATIENCE)
        return interaction.text

    def sent(self, path: str) -> list[Call]:
        """Requests of this test."""
        return [call for call in self.standin.calls[self.before :] if re.search(path, call.path)]

    def forgive(self, call: Call) -> None:
        """A request whose failure was the test's doing."""
        self.standin.calls.remove(call)


def made_scene(standin: Standin, folder: Path) -> Scene:
    world = standin.world
    guild = next(iter(world.guilds.values()), None) or world.guild("Lab")
    channel = world.text_channel(guild, f"channel-{len(guild.channels)}")
    wei, ann = world.user("wei", locale="zh-CN"), world.user("ann")
    for user in (wei, ann):
        world.join(guild, user)
    environment = {**standin.environ(), "DISCORD_TOKEN": world.token, "VRAM_BOT_DATA": str(folder),
                   "VRAM_BOT_PRICE_SOURCES": "none"}  # fmt: skip
    return Scene(
        standin=standin, world=world, channel=channel, before=len(standin.calls), environment=environment,
        wei=standin.actor(wei, channel), ann=standin.actor(ann, channel),
    )  # fmt: skip


def check(scene: Scene) -> None:
    """Every request fitted Discord's schema and its sums, and none was refused."""
    assert scene.standin.spec_errors == []
    for call in scene.sent(""):
        assert call.status < 400, (call.method, call.path, call.status, call.body)
        if call.body and "messages" in call.path:
            assert check_message(call.body, list(call.files)) == []


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """For tests that start the bot themselves."""
    async with Standin(spec=Spec(SCHEMA)) as standin:
        made = made_scene(standin, tmp_path)
        yield made
        check(made)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standin]:
    """One process for the tests that only talk with it."""
    async with Standin(spec=Spec(SCHEMA)) as standin, made_scene(standin, tmp_path_factory.mktemp("data")).bot():
        yield standin


@pytest_asyncio.fixture(loop_scope="module")
async def talk(running: Standin, tmp_path: Path) -> AsyncIterator[Scene]:
    """A new channel where the running bot is."""
    made = made_scene(running, tmp_path)
    await running.gateway.emit("CHANNEL_CREATE", made.channel.payload(), made.channel.guild_id)
    yield made
    check(made)


def ids(message: dict[str, Any], kind: str) -> list[str]:
    every = [part["custom_id"] for part in walk(message["components"]) if part.get("custom_id")]
    return [one for one in every if one.endswith(f":{kind}")]


def text(message: dict[str, Any]) -> str:
    return "\n".join([message["content"], *(part.get("content") or "" for part in walk(message["components"]))])


@pytest.mark.asyncio(loop_scope="module")
async def test_questions_of_every_kind_are_answered(talk: Scene) -> None:
    card = await talk.wei.slash("vram", model="0.5b", method="lora", gpu="8GB", timeout=PATIENCE)
    assert card.deferred and card.acknowledged_after < 3 and "放得下" in card.text
    picture = card.messages[0]["attachments"][0]
    assert talk.world.files[picture["id"]].startswith(b"\x89PNG") and "1.1" in picture["description"]

    choices = await talk.ann.autocomplete("vram", "model", "qwen2.5 7")
    assert "Qwen/Qwen2.5-7B" in {one["value"] for one in choices}

    await talk.ann.say("nobody asked the bot: 7b lora 8GB?")
    await talk.ann.say(f"<@{talk.world.bot.id}> 一张3090能lora微调llama3 8b吗 @everyone")
    (_, reply) = await talk.answers(talk.channel, 2)
    assert "Meta-Llama-3-8B" in text(reply) and "放得下" in text(reply) and reply["_pings"] == []

    direct = talk.world.dm(talk.ann.user)
    await talk.standin.actor(talk.ann.user, direct).say("qwen2.5-7b qlora 24GB seq 4k")
    (answer,) = await talk.answers(direct, 1)
    assert "FITS" in text(answer)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_dropped_socket_is_resumed_and_nothing_is_lost(talk: Scene) -> None:
    """The socket is cut, and the first try to come back is refused: op 6 then names the session and the last event."""
    gateway, question = talk.standin.gateway, f"<@{talk.world.bot.id}> llama3 8b lora 3090"
    (session,) = gateway.live()
    await talk.ann.say(question)
    seen = session.seq
    await talk.answers(talk.channel, 1)
    sessions, before = len(gateway.identifies), len(gateway.resumes)
    last, gateway.refuse_next = session.seq, 1
    await gateway.drop()
    await talk.ann.say(question.replace("lora", "qlora"))
    assert "QLoRA" in text((await talk.answers(talk.channel, 2))[1]), "what was said meanwhile is replayed"
    await talk.ann.say(question.replace("3090", "8GB"))
    answers = await talk.answers(talk.channel, 3)
    assert "8 GB" in text(answers[2]), "what is said afterwards is answered on the resumed session"
    (resumed,) = gateway.resumes[before:]
    assert (resumed["session_id"], resumed["token"]) == (session.id, talk.world.token)
    assert seen <= resumed["seq"] <= last
    assert len(gateway.identifies) == sessions, "no new session was begun"
    assert gateway.live() == [session]
    assert len(answers) == 3, "and nothing is answered twice"


@pytest.mark.asyncio(loop_scope="module")
async def test_many_at_once_are_all_acknowledged_in_time(talk: Scene) -> None:
    people = [talk.world.user(f"user{number}") for number in range(12)]
    for person in people:
        talk.world.join(talk.world.guilds[talk.channel.guild_id], person)
    everyone = [talk.standin.actor(person, talk.channel) for person in people]
    answers = await asyncio.gather(
        *(one.slash("vram", model="7b", method="qlora", gpu="24GB", timeout=PATIENCE) for one in everyone)
    )
    assert max(one.acknowledged_after for one in answers) < 3
    assert all("FITS" in one.text for one in answers)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cut_acknowledgement_is_tried_again(talk: Scene) -> None:
    talk.standin.fail("POST", r"/callback$", status=0)
    answer = await talk.ann.slash("vram", model="0.5b", method="lora", gpu="8GB", timeout=PATIENCE)
    assert "FITS" in answer.text
    (cut,) = [call for call in talk.sent("") if call.status == 500]
    talk.forgive(cut)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_comes_too_late_is_left_alone(talk: Scene) -> None:
    interaction = await talk.ann.slash("vram", model="0.5b", gpu="8GB", wait=False)
    interaction.created -= 3.5
    await talk.standin.until(lambda: talk.sent("/callback$"), PATIENCE)
    await talk.wei.slash("help", timeout=PATIENCE)
    (late, _) = talk.sent("/callback$")
    assert late.status == 404 and interaction.kind is None and interaction.messages == []
    talk.forgive(late)


async def test_buttons_and_conversations_outlive_the_process(scene: Scene) -> None:
    async with scene.bot():
        card = await scene.ann.slash("vram", model="llama3 8b", method="lora", gpu="RTX 3090", timeout=PATIENCE)
    message = card.messages[0]
    async with scene.bot() as process:
        other = await scene.ann.click(message, ids(message, "what_if")[0], timeout=PATIENCE)
        assert "17.2 GiB" in await scene.answered(other) and not other.ephemeral
        foreign = await scene.wei.click(message, ids(message, "math")[0], timeout=PATIENCE)
        assert "8,030,261,248" in await scene.answered(foreign) and foreign.ephemeral
        await scene.ann.say(f"<@{scene.world.bot.id}> and with qlora?")
        assert "QLoRA" in text((await scene.answers(scene.channel, 5))[-1])

        asked = asyncio.create_task(
            scene.ann.slash("vram", model="70b", method="full", gpu="H100 SXM5 80GB", timeout=PATIENCE)
        )
        known = len(scene.sent("/callback$"))
        await scene.standin.until(lambda: len(scene.sent("/callback$")) > known, PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert "Llama" in (await asked).text, "a question under way is answered before it stops"
    assert scene.standin.command_writes[""] == 8, "each command was registered once"
    assert len(scene.standin.sent("PUT", "/commands$")) == 1


async def test_the_images_health_check_holds_of_the_running_process(scene: Scene) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    scene.environment["VRAM_BOT_HEALTH"] = place
    command = json.loads(re.findall(r"^    CMD (\[.*])$", DOCKERFILE.read_text("utf-8"), re.MULTILINE)[0])

    async def checked() -> int:
        line = command[-1].replace("127.0.0.1:8080", place)
        return await (
            await asyncio.create_subprocess_exec(sys.executable, "-c", line, stderr=asyncio.subprocess.PIPE)
        ).wait()

    assert await checked() != 0
    async with scene.bot(), asyncio.timeout(PATIENCE):
        while await checked():  # each try is a process of its own; ready is who has heard of every server
            pass
    assert await checked() != 0


async def test_a_wrong_token_ends_with_one_sentence(scene: Scene) -> None:
    status, log = await ended(await launched({**scene.environment, "DISCORD_TOKEN": "wrong.token"}))
    (refused,) = scene.sent("")
    assert status == 2, log
    assert "does not accept DISCORD_TOKEN" in log and "Traceback" not in log and "wrong.token" not in log
    scene.forgive(refused)
