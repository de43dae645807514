"""What the log says of a lost connection; that it comes back is tried on the wire (test_wire.py)."""

import logging

import pytest

from bot.discord import comeback


def test_a_lost_connection_is_told_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    comeback.install()
    comeback.install()
    log = logging.getLogger("discord.shard")
    assert log.filters.count(comeback.in_a_line) == 1
    try:
        raise OSError(111, "refused")
    except OSError as error:
        log.error("Attempting a reconnect for shard ID %s in %.2fs", 0, 1.5, exc_info=error)
        log.error("Something else", exc_info=error)
    told, other = caplog.records
    assert (
        told.getMessage()
        == "Attempting a reconnect for shard ID 0 in 1.50s (ConnectionRefusedError: [Errno 111] refused)"
    )
    assert told.exc_info is None
    assert other.exc_info is not None, "faults keep their traceback"
