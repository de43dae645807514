"""Lines answered by several processes: in order, as they come, and without waiting for lines that are not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pytest

from bot.cli.workers import FEW, arriving, cores, side_by_side

LONGEST = 1000


@contextmanager
def pipe() -> Iterator[tuple[BinaryIO, int]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        yield source, writing


def shouted(line: bytes) -> tuple[bytes, int]:
    return line.upper(), os.getpid()


def test_lines_that_are_there_come_together_and_nobody_waits_for_the_next() -> None:
    with pipe() as (source, writing):
        batches = arriving(source, LONGEST)
        os.write(writing, b"one\ntwo\nhal")
        assert next(batches) == [b"one", b"two"]
        os.write(writing, b"f\n")
        assert next(batches) == [b"half"]
        os.write(writing, b"last")
        os.close(writing)
        assert list(batches) == [[b"last"]]


def test_of_a_line_without_end_only_the_beginning_is_kept() -> None:
    with pipe() as (source, writing):
        batches = arriving(source, LONGEST)
        for _ in range(5):
            os.write(writing, b"x" * LONGEST)
        os.write(writing, b"\nafter\n")
        os.close(writing)
        lines = [line for batch in batches for line in batch]
    assert len(lines[0]) >= LONGEST
    assert lines[1] == b"after"


@pytest.mark.skipif(cores() < 2, reason="one core")
def test_many_lines_are_answered_in_order_by_several_processes() -> None:
    lines = [b"line %d" % number for number in range(5 * FEW)]
    found = list(side_by_side([lines, lines[:2]], shouted, workers=2))
    assert [text for text, _ in found] == [line.upper() for line in [*lines, *lines[:2]]]
    few = [process for _, process in (*found[:FEW], *found[len(lines) :])]
    assert set(few) == {os.getpid()}
    assert os.getpid() not in {process for _, process in found[FEW : len(lines)]}


def test_one_worker_is_this_process() -> None:
    found = list(side_by_side([[b"a"] * 2 * FEW], shouted, workers=1))
    assert {process for _, process in found} == {os.getpid()}
