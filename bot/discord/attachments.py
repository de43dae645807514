"""Files that come with a message: logs and configurations as text, within bounds; everything else is named."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import aiohttp
import discord

log = logging.getLogger("bot.discord")

MOST_FILES = 3
LARGEST = 8 * 2**20
"""Bytes of a file; a longer log is better sent as its end."""
SECONDS = 30.0
TEXTS = frozenset(
    ["", ".txt", ".log", ".out", ".err", ".md", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".sh", ".py", ".csv"]
)
PICTURES = frozenset([".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"])
BINARY = b"\x00"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Files:
    """The texts of files, the names of those that were not read, and whether only pictures came."""

    texts: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    pictures: bool = False


async def read(attachments: Sequence[discord.Attachment]) -> Files:
    """Read the first few text files; size and kind are checked before anything is fetched."""
    texts: list[str] = []
    unread: list[str] = []
    pictures = [one for one in attachments if _suffix(one) in PICTURES]
    others = [one for one in attachments if one not in pictures]
    for one in others:
        text = await _text(one) if len(texts) < MOST_FILES and _is_readable(one) else None
        if text is None:
            unread.append(one.filename)
        else:
            texts.append(text)
    return Files(texts, unread, bool(pictures) and not others)


def _suffix(attachment: discord.Attachment) -> str:
    return PurePath(attachment.filename).suffix.lower()


def _is_readable(attachment: discord.Attachment) -> bool:
    said = (attachment.content_type or "").startswith("text/")
    return attachment.size <= LARGEST and (said or _suffix(attachment) in TEXTS)


async def _text(attachment: discord.Attachment) -> str | None:
    """What a file says; None when it cannot be had or is no text after all."""
    try:
        async with asyncio.timeout(SECONDS):
            raw = await attachment.read()
    except (discord.HTTPException, aiohttp.ClientError, OSError, TimeoutError) as error:
        log.warning("a file could not be fetched: %s", type(error).__name__)
        return None
    if raw[:2] in UTF_16:
        return raw.decode("utf-16", errors="replace")
    return None if BINARY in raw[:4096] else raw[:LARGEST].decode("utf-8", errors="replace")
