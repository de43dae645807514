"""Sending one message once, whatever happens between the claim and Discord's answer.

A message is claimed in the ledger before it is sent, and sent with a nonce of its own, by which Discord itself refuses
a second one for some minutes. Where nobody knows whether it arrived (a crash, a cut connection), the channel is looked
at before anything is sent again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Literal, Protocol

from bot.digest.ledger import Claim, State

log = logging.getLogger("bot.digest")

SECONDS_FOR_ONE = 90.0
RETRY_SECONDS = 60.0
NONCE_SECONDS = 120.0
"""Discord remembers a nonce for a few minutes; within two of them a second message cannot appear."""

Outcome = Literal["posted", "found", "refused", "open", "unknown", "another's"]


class Refused(Exception):
    """Discord will not take the message there; ``status`` is the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Unreadable(Exception):
    """The channel cannot be looked at, or not far enough back."""


class Parcel(Protocol):
    """A message to a channel that is to arrive once. Times are seconds of UTC."""

    async def claim(self) -> tuple[Claim, float] | None:
        """Take it on, and since when it is tried; None: it is another process's, or done."""
        ...

    async def send(self, first: float) -> int:
        """Send it; its message id. Raises Refused; any other error leaves it open whether it arrived."""
        ...

    async def find(self, since: float) -> int | None:
        """The message id if it is in the channel. Raises Unreadable."""
        ...

    async def settle(self, state: State, message: int | None = None) -> None:
        """Write down what became of it."""
        ...

    async def refuse(self, refused: Refused) -> None:
        """Write down that Discord will not have it."""
        ...

    async def release(self, seconds: float, why: str) -> None:
        """Leave it to be looked into in so many seconds."""
        ...


async def delivered(parcel: Parcel, now: Callable[[], float]) -> Outcome:
    """Send a message unless it was sent, and what became of it."""
    claim = await parcel.claim()
    if claim is None:
        return "another's"
    kind, first = claim
    if kind == "again" and (there := await _looked_for(parcel, first, now)):
        return there
    try:
        async with asyncio.timeout(SECONDS_FOR_ONE):
            message = await parcel.send(first)
    except Refused as refused:
        await parcel.refuse(refused)
        return "refused"
    except Exception as error:
        return await _left_open(parcel, error)
    await parcel.settle("posted", message)
    return "posted"


async def _looked_for(parcel: Parcel, first: float, now: Callable[[], float]) -> Outcome | None:
    """What became of an earlier try; None: it may be sent again."""
    try:
        async with asyncio.timeout(SECONDS_FOR_ONE):
            message = await parcel.find(first)
    except Unreadable:
        if now() - first <= NONCE_SECONDS:
            return None
        await parcel.settle("unknown")
        return "unknown"
    except Exception as error:
        return await _left_open(parcel, error)
    if message is None:
        return None
    await parcel.settle("posted", message)
    return "found"


async def _left_open(parcel: Parcel, error: Exception) -> Outcome:
    why = f"{type(error).__name__}: {error}"
    log.warning("%s: %s, it is looked into again", parcel, why)
    await parcel.release(RETRY_SECONDS, why)
    return "open"
