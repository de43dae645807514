"""The digest of the real process over a real socket: killed between Discord's taking a post and its answer."""

import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.digest.ledger import LEASE_SECONDS, Ledger
from bot.digest.subscription import Subscription
from tests.bot.discord.test_wire import PATIENCE, SCHEMA, check, launched, made_scene, text
from tests.standin import Standin
from tests.standin.openapi import Spec


def digests(channel: Any) -> list[str]:
    return [text(one) for one in channel.bot_messages() if "GPU prices ·" in text(one)]


def due_now(scene: Any, folder: Path, *channels: Any) -> date:
    """Channels whose post was due some minutes ago, and on which day; the last was refused twice before."""
    at = datetime.now(UTC) - timedelta(minutes=5)
    ledger = Ledger(folder / "digest.db")
    for channel in channels:
        ledger.keep(
            Subscription(
                channel=int(channel.id),
                guild=int(channel.guild_id),
                by=int(scene.ann.user.id),
                at=at.strftime("%H:%M"),
                zone="UTC",
                lang="en",
                currency="USD",
                since=0.0,
            )
        )
    for _ in range(2):
        ledger.failed(int(channels[-1].id))
    ledger.close()
    return at.date()


def age_claims(folder: Path) -> None:
    """As if ten minutes had passed: what was claimed may be looked into."""
    with sqlite3.connect(folder / "digest.db") as database:
        database.execute("update posts set at = at - ? where state = 'claimed'", (LEASE_SECONDS + 60,))


async def test_a_post_that_discord_took_is_not_sent_again_after_a_kill(tmp_path: Path) -> None:
    async with Standin(spec=Spec(SCHEMA)) as standin:
        scene = made_scene(standin, tmp_path)
        shut = scene.world.text_channel(scene.world.guilds[scene.channel.guild_id], "shut")
        shut.bot_may = False
        day = due_now(scene, tmp_path, scene.channel, shut)
        standin.fail("POST", rf"/channels/{scene.channel.id}/messages$", status=0, arrives=True)

        scene.environment["VRAM_BOT_DRAWERS"] = "0"  # a killed process leaves the one that draws behind for a while
        killed = await launched(scene.environment)
        await standin.until(lambda: digests(scene.channel), PATIENCE)
        direct = scene.world.dm(scene.ann.user)
        await standin.until(direct.bot_messages, PATIENCE)
        killed.kill()
        await killed.wait()
        (told,) = direct.bot_messages()
        assert f"<#{shut.id}>" in told["content"] and "switched off after 3 refusals" in told["content"]
        (refused,) = [call for call in scene.sent("") if call.status == 403]
        scene.forgive(refused)

        age_claims(tmp_path)
        async with scene.bot():
            await standin.until(lambda: [call for call in scene.sent("messages") if call.method == "GET"], PATIENCE)
            await standin.gateway.drop()
            await scene.ann.say(f"<@{scene.world.bot.id}> 7b lora 24GB?")
            await scene.answers(scene.channel, 2)
        assert len(digests(scene.channel)) == 1 and digests(shut) == []
        ledger = Ledger(tmp_path / "digest.db")
        post = ledger.post(int(scene.channel.id), day)
        assert post is not None and post.state == "posted" and post.message is not None
        assert [one.channel for one in ledger.enabled()] == [int(scene.channel.id)]
        ledger.close()
        check(scene)
