"""The digest's commands and posts, against a simulated Discord."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Literal

import discord
import pytest

from bot.digest.crossings import Crossing
from bot.digest.delivery import Refused, Unreadable
from bot.digest.due import Due
from bot.digest.ledger import Ledger, Post
from bot.digest.subscription import Alert, Subscription
from bot.discord.daily import alert_text
from bot.discord.digest import told
from bot.discord.pace import Pace
from tests.bot.discord.messages import text
from tests.bot.prices.made import made

BEGIN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""When the simulated Discord's own clock begins."""


@pytest.fixture
def boss(lab: SimpleNamespace) -> Any:
    """A member who may manage the server."""
    role = lab.guild.create_role("boss", permissions=discord.Permissions(manage_guild=True))
    return lab.guild.add_member(lab.env.create_user("boss"), roles=[role])


def digests(lab: SimpleNamespace) -> list[str]:
    return [text(one) for one in lab.channel.history() if "GPU prices" in text(one)]


async def test_price_is_answered_with_classes_days_and_a_picture(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "price", gpu="H100")
    shown = text(done.response)
    assert "big clouds" in shown and "2026-" in shown and "no date" in shown
    assert done.response.attachments[0].filename == "prices.png"
    assert "big clouds" in (done.response.attachments[0].description or "")


async def test_an_unknown_card_is_told_privately(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "price", gpu="nosuch card")
    assert "no GPU is known" in "".join(map(text, [done.response, *done.followups]))


async def test_setting_it_up_needs_manage_server_whatever_discord_lets_through(lab: SimpleNamespace) -> None:
    command = next(one for one in await lab.env.bot.tree.fetch_commands() if one.name == "digest")
    assert command.default_member_permissions == discord.Permissions(manage_guild=True)
    lab.guild.set_command_permissions(command, {lab.ann: True})
    done = await lab.ann.slash(lab.channel, "digest on", time="9:00")
    assert "Manage Server" in text(done.response) and done.ephemeral
    assert await lab.env.bot.daily.stored(Ledger.enabled) == []


async def test_on_preview_now_and_off(lab: SimpleNamespace, boss: Any) -> None:
    bot = lab.env.bot
    done = await boss.slash(
        lab.channel, "digest on", time="9:30", zone="Asia/Shanghai", gpus="4090, H100", runs="qlora 8b at 4k",
        alerts="H100 < 2, 4090 < 1.5 CNY", currency="USD",
    )  # fmt: skip
    assert done.ephemeral
    assert "09:30 (Asia/Shanghai)" in text(done.response) and "< $2.00" in text(done.response)
    wanted = await bot.daily.stored(Ledger.wanted, lab.channel.id)
    assert wanted is not None and wanted.gpus[0] == "RTX 4090" and len(wanted.alerts) == 4
    shown = await boss.slash(lab.channel, "digest preview")
    assert shown.ephemeral and "qlora 8b at 4k" in text(shown.response)
    assert digests(lab) == []
    assert "Posted" in text((await boss.slash(lab.channel, "digest now")).response)
    assert "once a day" in text((await boss.slash(lab.channel, "digest now")).response)
    assert len(digests(lab)) == 1
    assert "is off" in text((await boss.slash(lab.channel, "digest off")).response)
    assert await bot.daily.stored(Ledger.enabled) == []


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        ("posted", "", "comes once a day"),
        ("claimed", "", "has not confirmed"),
        ("unknown", "", "not sent again"),
        ("refused", "404 10003", "the channel is gone"),
        ("refused", "400 50035", "the message was refused"),
    ],
)
def test_why_nothing_is_posted_is_told_as_it_is(
    state: Literal["posted", "claimed", "unknown", "refused"], error: str, said: str
) -> None:
    assert said in told(Post(state, 0.0, None, 0.0, 1, error), "en")


BAD = {
    "time": ("25:00", "no time of day"), "zone": ("Mars/Base", "no time zone"), "alerts": ("cheap", "no threshold"),
    "gpus": ("nosuch", "no GPU is known"), "runs": ("hello", "names no model"), "classes": ("x", "unknown class"),
}  # fmt: skip


async def test_bad_values_get_one_sentence_and_change_nothing(lab: SimpleNamespace, boss: Any) -> None:
    await boss.slash(lab.channel, "digest on", time="9:00")
    before = await lab.env.bot.daily.stored(Ledger.wanted, lab.channel.id)
    for name, (value, said) in BAD.items():
        lab.env.bot.pace = Pace()
        done = await boss.slash(lab.channel, "digest on", **{name: value})
        assert said in text(done.response)
        assert await lab.env.bot.daily.stored(Ledger.wanted, lab.channel.id) == before


async def test_what_is_due_is_posted_once_with_a_picture(lab: SimpleNamespace) -> None:
    daily = lab.env.bot.daily
    moment = datetime.now(UTC) - timedelta(minutes=5)  # of yesterday, shortly after midnight
    at = moment.strftime("%H:%M")
    wanted = Subscription(channel=lab.channel.id, guild=lab.guild.id, by=lab.ann.id, at=at, zone="UTC", lang="en",
                          currency="USD", since=0.0)  # fmt: skip
    await daily.stored(Ledger.keep, wanted)
    first, second = await daily.poster.round(), await daily.poster.round()
    assert (first.posted, second.posted) == (1, 0)
    assert len(digests(lab)) == 1
    assert lab.channel.last_message.attachments[0].filename == "prices.png"
    assert await daily.find(SimpleNamespace(subscription=wanted, day=moment.date()), 0.0)


async def test_a_post_is_known_again_in_whatever_language_it_was_sent(lab: SimpleNamespace) -> None:
    """A setting changed between a try and the look for it brings no second post."""
    daily, today = lab.env.bot.daily, datetime.now(UTC).date()
    wanted = Subscription(channel=lab.channel.id, guild=lab.guild.id, by=lab.ann.id, at="00:00", zone="UTC", lang="zh",
                          currency="CNY", since=0.0)  # fmt: skip
    due = Due(wanted, today, datetime.now(UTC))
    assert await daily.find(due, BEGIN) is None
    sent = await daily.send(due, await daily.content(wanted, today), "n1")
    english = replace(due, subscription=replace(wanted, lang="en"))
    assert await daily.find(english, BEGIN) == sent
    assert await daily.find(replace(due, day=today - timedelta(days=1)), BEGIN) is None


async def test_what_lies_too_far_back_is_not_taken_for_missing(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.discord.daily.MESSAGES_LOOKED_AT", 3)
    daily = lab.env.bot.daily
    wanted = Subscription(channel=lab.channel.id, guild=lab.guild.id, by=lab.ann.id, at="00:00", zone="UTC", lang="en",
                          currency="USD", since=0.0)  # fmt: skip
    due = Due(wanted, datetime.now(UTC).date(), datetime.now(UTC))
    for number in range(3):
        await lab.ann.send(lab.channel, f"talk {number}")
    with pytest.raises(Unreadable):
        await daily.find(due, BEGIN)


async def test_a_crossing_is_told_in_the_channel_once_and_known_again(lab: SimpleNamespace) -> None:
    daily = lab.env.bot.daily
    alert = Alert("RTX 4090", 0.45)
    wanted = Subscription(channel=lab.channel.id, guild=lab.guild.id, by=lab.ann.id, at="00:00", zone="UTC", lang="zh",
                          currency="CNY", since=0.0, alerts=(alert,))  # fmt: skip
    await daily.stored(Ledger.keep, wanted)
    offer = made(0.4, seen_at=datetime.now(UTC), as_of=datetime.now(UTC).date().isoformat())
    assert [await daily.crossings.round([offer]) for _ in range(3)] == [1, 0, 0]
    told = [text(one) for one in lab.channel.history() if "RTX 4090" in text(one)]
    assert len(told) == 1 and "已低于每卡每小时 ¥2.99：现价 ¥2.66（acme" in told[0]
    crossing = Crossing(replace(wanted, lang="en"), alert, offer)
    assert await daily.find_alert(crossing, BEGIN)
    assert await daily.find_alert(replace(crossing, alert=Alert("RTX 4090", 0.3)), BEGIN) is None


async def test_a_deleted_channel_is_refused_and_told_in_private(lab: SimpleNamespace) -> None:
    wanted = Subscription(channel=1, guild=lab.guild.id, by=lab.ann.id, at="09:00", zone="UTC", lang="en",
                          currency="USD", since=0.0)  # fmt: skip
    daily = lab.env.bot.daily
    content = await daily.content(wanted, datetime.now(UTC).date())
    with pytest.raises(Refused):
        await daily.send(SimpleNamespace(subscription=wanted, day=datetime.now(UTC).date()), content, "n1")
    await daily.switched_off(wanted, Refused(404, "404 10003"))


def test_an_alert_has_price_provider_day_and_threshold() -> None:
    wanted = Subscription(1, 1, 1, "09:00", "UTC", "zh", "CNY", 0.0)
    assert alert_text(wanted, Alert("RTX 4090", 0.45), made(0.4)) == (
        "**RTX 4090** 已低于每卡每小时 ¥2.99：现价 ¥2.66（acme，2026-11-30）。"
    )


async def test_days_skipped_before_the_first_post_are_said_in_it(lab: SimpleNamespace) -> None:
    daily, today = lab.env.bot.daily, datetime.now(UTC).date()
    since = datetime.now(UTC) - timedelta(days=2)
    wanted = Subscription(channel=lab.channel.id, guild=lab.guild.id, by=lab.ann.id, at="00:00", zone="UTC", lang="en",
                          currency="USD", since=since.timestamp())  # fmt: skip
    late, older = today - timedelta(days=1), today - timedelta(days=30)
    await daily.stored(Ledger.skip, [(lab.channel.id, late), (lab.channel.id, older)], datetime.now(UTC).timestamp())
    content = await daily.content(wanted, today)
    assert f"Not posted on {late}: the bot was not running." in "\n".join(content.card.sections)
