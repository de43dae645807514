"""``/digest``: who may set the daily price post of a channel, and what it follows."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands
from discord.app_commands import Choice, Range

from bot.digest.due import Due, local_day, next_moment
from bot.digest.ledger import Ledger, Post
from bot.digest.subscription import (
    BadDigest,
    Subscription,
    alerts_of,
    classes_of,
    gpus_of,
    time_of,
    workloads_of,
    zone_of,
    zones,
)
from bot.discord.acknowledge import acknowledged, send_privately
from bot.discord.daily import refusal
from bot.discord.translate import language_of_locale, text
from bot.prices.ask import currency_of
from bot.prices.money import amount, bundled_rates
from bot.texts import say

if TYPE_CHECKING:
    from bot.discord.client import VramBot

    Asked = discord.Interaction[VramBot]

CURRENCIES = [Choice(name=one, value=one) for one in ("USD", "CNY")]
LANGUAGES = [Choice(name="English", value="en"), Choice(name="中文", value="zh")]
OPTIONS = {
    "time": "time", "zone": "zone", "channel": "channel", "language": "language", "currency": "currency",
    "gpus": "gpus_followed", "classes": "classes", "workloads": "workloads", "alerts": "alerts",
}  # fmt: skip


class Digest(app_commands.Group):
    """Needs Manage Server: said to Discord, and checked here as well."""

    def __init__(self) -> None:
        super().__init__(
            name=text("command.digest"),
            description=text("command.digest_does"),
            allowed_installs=app_commands.AppInstallationType(guild=True),
            allowed_contexts=app_commands.AppCommandContext(guild=True),
            default_permissions=discord.Permissions(manage_guild=True),
        )

    @app_commands.command(name=text("command.digest_on"), description=text("command.digest_on_does"))
    @app_commands.rename(**{name: text(f"option.{key}") for name, key in OPTIONS.items()})
    @app_commands.describe(**{name: text(f"option_does.{key}") for name, key in OPTIONS.items()})
    @app_commands.choices(currency=CURRENCIES, language=LANGUAGES)
    async def on(
        self,
        interaction: "Asked",
        time: Range[str, 1, 10] | None = None,
        zone: Range[str, 1, 60] | None = None,
        channel: discord.TextChannel | None = None,
        language: str | None = None,
        currency: str | None = None,
        gpus: Range[str, 1, 300] | None = None,
        classes: Range[str, 1, 300] | None = None,
        workloads: Range[str, 1, 600] | None = None,
        alerts: Range[str, 1, 400] | None = None,
    ) -> None:
        """Set a channel's digest up, or change what is named."""
        given = {
            "time": time, "zone": zone, "language": language, "currency": currency, "gpus": gpus, "classes": classes,
            "workloads": workloads, "alerts": alerts,
        }  # fmt: skip
        await _doing(interaction, partial(_set_up, interaction, channel, given))

    @on.autocomplete("zone")
    async def _zones(self, interaction: "Asked", typed: str) -> list[Choice[str]]:
        return [Choice(name=one, value=one) for one in zones(typed)]

    @app_commands.command(name=text("command.digest_off"), description=text("command.digest_off_does"))
    @app_commands.rename(channel=text("option.channel"))
    @app_commands.describe(channel=text("option_does.channel"))
    async def off(self, interaction: "Asked", channel: discord.TextChannel | None = None) -> None:
        """Stop a channel's digest."""
        lang, where = language_of_locale(interaction.locale), _channel(interaction, channel)

        async def work() -> str:
            was = await interaction.client.daily.stored(Ledger.drop, where)
            return say(lang, "digest.off" if was else "digest.was_off", channel=f"<#{where}>")

        await _doing(interaction, work)

    @app_commands.command(name=text("command.digest_preview"), description=text("command.digest_preview_does"))
    async def preview(self, interaction: "Asked") -> None:
        """Show today's post of this channel, or the usual one, to the asker alone."""
        lang = language_of_locale(interaction.locale)
        async with interaction.client.working():
            if not await _may_manage(interaction) or not await acknowledged(interaction, private=True):
                return
            daily, where = interaction.client.daily, _channel(interaction, None)
            wanted = await daily.stored(Ledger.wanted, where) or usual(interaction, where, lang)
            content = await daily.content(wanted, local_day(wanted, datetime.now(UTC)))
            await interaction.followup.send(**content.message(), ephemeral=True)

    @app_commands.command(name=text("command.digest_now"), description=text("command.digest_now_does"))
    async def now(self, interaction: "Asked") -> None:
        """Post today's digest of this channel, unless it was posted."""
        await _doing(interaction, partial(_post_now, interaction))


async def _may_manage(interaction: "Asked") -> bool:
    """Whether the asker may manage the server, whatever Discord let through; who may not is told so."""
    if interaction.guild_id is not None and interaction.permissions.manage_guild:
        return True
    key = "digest.only_server" if interaction.guild_id is None else "digest.no_right"
    await send_privately(interaction, say(language_of_locale(interaction.locale), key))
    return False


async def _doing(interaction: "Asked", work: Any) -> None:
    """Do something and say how it went, privately."""
    async with interaction.client.working():
        if await _may_manage(interaction) and await acknowledged(interaction, private=True):
            try:
                sentence = await work()
            except BadDigest as error:
                sentence = str(error)
            await send_privately(interaction, sentence)


def _channel(interaction: "Asked", named: discord.TextChannel | None) -> int:
    return named.id if named else interaction.channel_id or 0


def usual(interaction: "Asked", channel: int, lang: str) -> Subscription:
    """What a channel gets where nothing else is said."""
    zone = "Asia/Shanghai" if lang == "zh" else "UTC"
    return Subscription(
        channel=channel, guild=interaction.guild_id or 0, by=interaction.user.id, at="09:00", zone=zone, lang=lang,
        currency=currency_of(lang), since=datetime.now(UTC).timestamp(),
    )  # fmt: skip


def changed(before: Subscription, given: dict[str, Any], lang: str) -> Subscription:
    """The wishes with what was given laid over them. Raises BadDigest."""
    currency = given.get("currency") or before.currency
    after = replace(before, lang=given.get("language") or before.lang, currency=currency)
    readers: dict[str, tuple[str, Any]] = {
        "time": ("at", time_of), "zone": ("zone", zone_of), "gpus": ("gpus", gpus_of),
        "classes": ("classes", classes_of), "workloads": ("workloads", workloads_of),
        "alerts": ("alerts", partial(alerts_of, currency=currency)),
    }  # fmt: skip
    read = {field: reader(given[name], lang) for name, (field, reader) in readers.items() if given.get(name)}
    return replace(after, **read, enabled=True, failures=0)


async def _set_up(interaction: "Asked", named: discord.TextChannel | None, given: dict[str, Any]) -> str:
    lang, where = language_of_locale(interaction.locale), _channel(interaction, named)
    if not _may_post(interaction, named):
        return say(lang, "digest.no_access", channel=f"<#{where}>")
    daily, now = interaction.client.daily, datetime.now(UTC)
    before = await daily.stored(Ledger.wanted, where) or usual(interaction, where, lang)
    read = await interaction.client.desk.work(changed, before, given, lang)
    wanted = replace(read, by=interaction.user.id, since=now.timestamp())
    await daily.stored(Ledger.keep, wanted)
    alerts = ", ".join(_alert_text(wanted, one) for one in wanted.alerts)
    return say(
        lang, "digest.on", channel=f"<#{where}>", at=wanted.at, zone=wanted.zone,
        next=f"<t:{int(next_moment(wanted, now).timestamp())}:R>",
        alerts=say(lang, "digest.on_alerts", alerts=alerts) if alerts else "",
    )  # fmt: skip


def _alert_text(wanted: Subscription, alert: Any) -> str:
    price = amount(alert.below_usd, wanted.currency, bundled_rates())
    return f"{alert.gpu}{' spot' if alert.spot else ''} < {price}"


def _may_post(interaction: "Asked", named: discord.TextChannel | None) -> bool:
    may = interaction.app_permissions
    if named is not None and interaction.guild is not None and interaction.guild.me is not None:
        found = interaction.guild.get_channel(named.id)
        may = found.permissions_for(interaction.guild.me) if found else may
    return may.view_channel and may.send_messages and may.attach_files


async def _post_now(interaction: "Asked") -> str:
    lang, where = language_of_locale(interaction.locale), _channel(interaction, None)
    daily, now = interaction.client.daily, datetime.now(UTC)
    wanted = await daily.stored(Ledger.wanted, where)
    if wanted is None:
        return say(lang, "digest.none", channel=f"<#{where}>")
    day = local_day(wanted, now)
    tally = await daily.poster.post_now(Due(wanted, day, now))
    if tally.posted or tally.found:
        return say(lang, "digest.posted")
    return told(await daily.stored(Ledger.post, where, day), lang)


def told(post: Post, lang: str) -> str:
    """Why nothing was posted just now."""
    if post.state == "refused":
        return say(lang, "digest.not_posted", why=refusal(lang, post.error))
    key = {"claimed": "open", "unknown": "unknown"}.get(post.state, "already")
    return say(lang, f"digest.{key}", when=f"<t:{int(post.at)}:R>")
