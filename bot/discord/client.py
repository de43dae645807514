"""The client: what it listens to, and what it does with it."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import discord

from bot import service
from bot.answer import Answer
from bot.digest.ledger import Ledger
from bot.discord import suggest
from bot.discord.acknowledge import send_privately
from bot.discord.attachments import Files, read
from bot.discord.buttons import CardButton
from bot.discord.commands import COMMANDS, HELP
from bot.discord.costs import COSTS
from bot.discord.daily import Daily
from bot.discord.desk import Busy, Desk
from bot.discord.digest import Digest
from bot.discord.errors import tell
from bot.discord.pace import Pace
from bot.discord.places import asker_of_message, sender_for
from bot.discord.presses import press
from bot.discord.replies import Asker, reply, tell_unread
from bot.discord.translate import Words, language_of_locale
from bot.discord.tree import Tree
from bot.intake.tokens import clean
from bot.intake.understand import Question
from bot.language import language_of
from bot.settings import Settings
from bot.store import Store
from bot.texts import say

if TYPE_CHECKING:
    from bot.llm.helper import Helper

log = logging.getLogger("bot.discord")

MESSAGES_REMEMBERED = 2_000
"""Messages known to have been answered: after a lost connection Discord sends some again."""
LONGEST_WAIT = 60.0
"""Seconds that a request may wait for Discord's rate limit."""


class VramBot(discord.AutoShardedClient):
    """Answers slash commands, buttons, mentions, replies and direct messages; needs no privileged intent."""

    def __init__(
        self,
        settings: Settings,
        guild_ready_timeout: float = 2.0,
        shard_count: int | None = None,
        helper: "Helper | None" = None,
        daily: bool = True,
    ) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True),
            allowed_mentions=discord.AllowedMentions.none(),
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            max_messages=None,
            max_ratelimit_timeout=LONGEST_WAIT,
            guild_ready_timeout=guild_ready_timeout,
            shard_count=shard_count,
        )
        self.desk = Desk(settings)
        self.daily = Daily(self, settings)
        self._with_daily = daily
        self.pace = Pace()
        self.helper = helper
        self.tree = Tree(self)
        self._answered: OrderedDict[int, None] = OrderedDict()
        self._running: set[asyncio.Task[object]] = set()
        self._stopping = False

    async def setup_hook(self) -> None:
        """Everything that is done once, before the connection: READY may come several times."""
        await self.desk.open()
        await self.desk.work(suggest.warm)
        await self.tree.set_translator(Words())
        for command in (*COMMANDS, *COSTS):
            self.tree.add_command(command)
        self.tree.add_command(Digest())
        self.add_dynamic_items(CardButton)
        await self.tree.sync_if_changed()
        await self.daily.open()
        if self._with_daily:
            self.daily.start()

    async def on_ready(self) -> None:
        """Only a line in the log."""
        log.info("connected as %s, %d servers", self.user, len(self.guilds))

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        """Forget a server that the bot has left."""
        await self.daily.stored(Ledger.drop_guild, guild.id)

    async def on_message(self, message: discord.Message) -> None:
        """Answer what is said to the bot: in a direct message, with a mention, or as a reply to it."""
        if not self._is_for_us(message):
            return
        asker = asker_of_message(message)
        if asker is None:
            log.info("a question came from where the bot may not write")
            return
        lang = language_of(clean(message.content), fallback=language_of_locale(_locale(message)))
        send = sender_for(message)
        try:
            async with self.working():
                if wait := self.pace.wait(asker.user):
                    if self.pace.first_time(asker.user):
                        await send(_wait_sentence(lang, wait))
                    return
                await self._reply_to(message, asker, lang, send)
        except Exception as error:
            await tell(error, lang, "a message", send)

    async def _reply_to(
        self, message: discord.Message, asker: Asker, lang: str, send: Callable[..., Awaitable[object]]
    ) -> None:
        files = await read(message.attachments)
        await reply(self.desk, asker, await self._work(message.content, files, asker, lang), send)
        await tell_unread(files, lang, send)

    async def _work(self, words: str, files: Files, asker: Asker, lang: str) -> Callable[[], Answer]:
        """What answers a message: its words with its files' texts, over what was asked before."""
        bare = not clean(words).strip()
        if bare and files.pictures:
            return partial(service.picture_declined, lang)
        if bare and files.unread and not files.texts:
            return partial(Answer, lang="zh" if lang == "zh" else "en", reply="ignore")
        talk = await self.desk.stored(Store.talk, asker.channel, asker.user)
        before = Question("answer", talk.question, spoken=talk.spoken) if talk else None
        text = HELP[lang] if bare and not files.texts else "\n".join([words, *files.texts])
        work = partial(service.ask, text, lang=lang, before=before)
        return work if self.helper is None or bare else await self._helped(self.helper, work, text, before)

    async def _helped(
        self, helper: "Helper", work: Callable[[], Answer], text: str, before: Question | None
    ) -> Callable[[], Answer]:
        """The grammar's answer, or the language model's where that is unsure; no worker waits for the model."""
        first = await self.desk.work(work)
        if helper.wanted(text, first):
            first = await helper.answer(text, first.lang, first, before.spoken if before else ())
        return lambda: first

    def _is_for_us(self, message: discord.Message) -> bool:
        if message.author.bot or message.type not in (discord.MessageType.default, discord.MessageType.reply):
            return False
        if message.guild is not None and self.user not in message.mentions:
            return False
        return bool(message.content or message.attachments) and self._is_new(message.id)

    def _is_new(self, message: int) -> bool:
        if message in self._answered:
            return False
        self._answered[message] = None
        if len(self._answered) > MESSAGES_REMEMBERED:
            self._answered.popitem(last=False)
        return True

    async def pressed(self, interaction: "discord.Interaction[VramBot]", button: CardButton) -> None:
        """A button of a card was pressed."""
        try:
            if await self.may_ask(interaction):
                async with self.working():
                    await press(interaction, button)
        except Exception as error:
            lang = language_of_locale(interaction.locale)
            await tell(error, lang, "a button", partial(send_privately, interaction))

    async def may_ask(self, interaction: "discord.Interaction[VramBot]") -> bool:
        """Whether the user may ask now; who must wait is told so."""
        lang = language_of_locale(interaction.locale)
        if self._stopping:
            await send_privately(interaction, say(lang, "discord.busy"))
            return False
        if wait := self.pace.wait(interaction.user.id):
            await send_privately(interaction, _wait_sentence(lang, wait))
            return False
        return True

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Counts the current task among those that a stop waits for."""
        task = asyncio.current_task()
        if self._stopping or task is None:
            raise Busy
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def wind_down(self, seconds: float) -> None:
        """Take no more questions and let running ones end, for so long at most."""
        self._stopping = True
        if self._running:
            await asyncio.wait(set(self._running), timeout=seconds)

    async def unready(self) -> str:
        """Why questions are not answered now; empty where they are."""
        if self._stopping:
            return "stopping"
        if not self.is_ready() or any(shard.is_closed() for shard in self.shards.values()):
            return "not connected to Discord"
        try:
            await self.desk.stored(Store.note, "ready")
        except Exception as error:
            log.error("the store does not answer", exc_info=error)
            return "the store does not answer"
        return ""

    async def close(self) -> None:
        """Leave Discord and close the store."""
        await self.daily.close()
        await super().close()
        await self.desk.close()


def _wait_sentence(lang: str, seconds: float) -> str:
    return say(lang, "discord.wait", at=f"<t:{int(time.time() + seconds) + 1}:R>")


def _locale(message: discord.Message) -> discord.Locale | None:
    return message.guild.preferred_locale if message.guild else None
