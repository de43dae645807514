"""Runs the command line in this process."""

import io
from typing import NamedTuple

import pytest

from bot.cli import main


class Done(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Done:
    """Run ``vram-bot`` with these arguments."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return Done(left.value.code, out, err)


def typed(text: str) -> io.TextIOWrapper:
    """A standard input that holds this text."""
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
