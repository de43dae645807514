"""Lines answered side by side: as many processes as the machine lends cores, answers in the order of the lines."""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from select import select
from typing import BinaryIO, TypeVar

from bot.parent import end_with_parent

Found = TypeVar("Found")
Answering = Callable[[bytes], Found]

FEW = 3
"""Lines that one process answers sooner than others are started for them."""
SHARES = 100
"""Lines are handed out in so many shares a process: small ones, as one line may take as long as many."""
YOUNG = 1_000_000
"""Objects made between two looks for cycles: a line leaves few behind, and each look sees all that is remembered."""
READ_AT_ONCE = 1 << 20
MOST_WAITING = 32 << 20
"""Bytes of lines that are read ahead of their answers."""

_answering: Answering[object] | None = None


def arriving(source: BinaryIO, longest: int) -> Iterator[list[bytes]]:
    """The lines of a pipe or file as they come: a list holds all that are there, so nobody waits for a later line.

    Of a line of more bytes than ``longest`` at least so many are kept.
    """
    rest = b""
    while chunk := _there(source.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:longest]
        if lines:
            yield lines
    if rest:
        yield [rest]


def _there(descriptor: int) -> bytes:
    """Some bytes, waited for, and all behind them that need no waiting."""
    parts = [os.read(descriptor, READ_AT_ONCE)]
    size = len(parts[0])
    while parts[-1] and size < MOST_WAITING and select([descriptor], [], [], 0)[0]:
        parts.append(os.read(descriptor, READ_AT_ONCE))
        size += len(parts[-1])
    return b"".join(parts)


def cores() -> int:
    """How many processes may answer: one where they could not be forked cheaply and safely."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def side_by_side(batches: Iterable[list[bytes]], answer: Answering[Found], workers: int) -> Iterator[Found]:
    """``answer`` of every line, in order; each process keeps what it worked out for later lines.

    The first lines are answered before processes are forked, so that all begin with what those needed.
    """
    pool: ProcessPoolExecutor | None = None
    try:
        for batch in batches:
            alone = len(batch) if len(batch) <= FEW or workers < 2 else 0 if pool else FEW
            yield from map(answer, batch[:alone])
            if alone < len(batch):
                pool = pool or _pool(answer, workers)
                yield from pool.map(_answer, batch[alone:], chunksize=len(batch) // (workers * SHARES) or 1)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _pool(answer: Answering[Found], workers: int) -> ProcessPoolExecutor:
    gc.set_threshold(YOUNG)
    gc.freeze()
    return ProcessPoolExecutor(workers, get_context("fork"), _take, (answer,))


def _take(answering: Answering[object]) -> None:
    global _answering
    _answering = answering
    end_with_parent()


def _answer(line: bytes) -> Found:  # type: ignore[type-var]
    assert _answering is not None
    return _answering(line)  # type: ignore[return-value]
