"""Coming back after the gateway was lost: a shard resumes its session however many tries it takes, and logs in a line.

discord.py 2.7.1's ``Client.connect`` asks to resume after every failed try; its shards do so at the first alone and
then begin a new session (``Shard.reconnect``), so that what was said to the bot meanwhile would never be answered.
"""

import logging

from discord.gateway import ReconnectWebSocket
from discord.shard import Shard

_anew = Shard.reconnect


async def _resumed(shard: Shard) -> None:
    """Ask for the session again where there was one: Discord says if it is gone, and a new one is begun then."""
    session = getattr(shard.ws, "session_id", None)
    await (shard.reidentify(ReconnectWebSocket(shard.id, resume=True)) if session else _anew(shard))


def in_a_line(record: logging.LogRecord) -> bool:
    """Lost connections are no faults of ours: what went wrong is told behind the message, without a traceback."""
    if record.exc_info and record.exc_info[1] is not None and "reconnect" in record.getMessage():
        error = record.exc_info[1]
        record.msg = f"{record.getMessage()} ({type(error).__name__}: {error})"
        record.args, record.exc_info, record.exc_text = None, None, None
    return True


def install() -> None:
    """Make every shard come back so, and the library's log short."""
    Shard.reconnect = _resumed  # type: ignore[method-assign, assignment]
    for name in ("discord.shard", "discord.client"):
        log = logging.getLogger(name)
        if in_a_line not in log.filters:
            log.addFilter(in_a_line)
