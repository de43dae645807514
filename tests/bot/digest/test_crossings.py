"""Thresholds: each crossing is told once, whatever ends or fails on the way; flapping prices are not told again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.digest.delivery import Refused
from bot.digest.due import Due
from bot.digest.subscription import Alert
from bot.prices.offers import Offer
from tests.bot.digest.worlds import Process, World, wish
from tests.bot.prices.made import made

ALERT = Alert("RTX 4090", 2.0)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def at(price: float, world: World, **changes: object) -> Offer:
    return made(price, as_of=world.now.date().isoformat(), seen_at=world.now, **changes)


@pytest.fixture
def world() -> World:
    return World(now=datetime(2026, 11, 30, 12, tzinfo=UTC))


@pytest.fixture
def bot(tmp_path: Path, world: World) -> Process:
    made_bot = Process(tmp_path / "digest.db", world)
    made_bot.ledger.keep(wish(alerts=(ALERT,)))
    return made_bot


def test_one_message_a_crossing_and_none_while_it_flaps(bot: Process, world: World) -> None:
    prices = [2.1, 1.99, 2.01, 1.98, 2.05, 1.9, 2.07, 1.9, 1.95]  # above 2.06 it is armed, the day after it may be told
    told = []
    for price in prices:
        world.now += HOUR * 13
        told.append(bot.tell(at(price, world)))
    assert told == [0, 1, 0, 0, 0, 0, 0, 1, 0]
    assert len(world.said) == 2


def test_a_day_must_pass_between_two(bot: Process, world: World) -> None:
    assert bot.tell(at(1.9, world)) == 1
    world.now += HOUR
    assert bot.tell(at(2.2, world)) == 0
    world.now += HOUR
    assert bot.tell(at(1.9, world)) == 0
    world.now += HOUR * 23
    assert bot.tell(at(1.9, world)) == 1


def test_only_todays_dated_prices_of_followed_classes_and_kind_count(bot: Process, world: World) -> None:
    for offer in (
        at(1.5, world, spot=True), at(1.5, world, provider_class="lease-cn"), made(1.5, as_of=""),
        made(1.5, as_of="2026-11-01"), made(1.5, embedded=True), at(1.5, world, quality="quarantined"),
        at(1.5, world, gpu="L40S"),
    ):  # fmt: skip
        assert bot.tell(offer) == 0
    assert world.said == []
    assert bot.tell(at(1.5, world)) == 1


@pytest.mark.parametrize("readable", [True, False])
def test_a_process_that_ends_anywhere_tells_once(tmp_path: Path, readable: bool) -> None:
    for first in range(24):
        world = World(now=datetime(2026, 11, 30, 12, tzinfo=UTC), readable=readable)
        path = tmp_path / f"{first}.db"
        begin = Process(path, world)
        begin.dies(lambda begin=begin: begin.ledger.keep(wish(alerts=(ALERT,))))
        for steps in (first, None, None, None):
            bot = Process(path, world, steps=steps)
            bot.dies(lambda bot=bot, world=world: bot.tell(at(1.9, world)))
            world.now += MINUTE * 11
        assert len(world.said) == 1 or not readable, first
        assert len(world.said) <= 1


def test_two_processes_tell_once(tmp_path: Path, world: World) -> None:
    bots = [Process(tmp_path / "digest.db", world) for _ in range(2)]
    for channel in range(10):
        bots[0].ledger.keep(wish(channel, alerts=(ALERT,)))
    assert [bot.tell(at(1.9, world)) for bot in bots] == [10, 0]
    assert len(world.said) == 10


@pytest.mark.parametrize("arrives", [True, False])
def test_a_fault_of_discords_is_tried_again(bot: Process, world: World, arrives: bool) -> None:
    def fail(due: Due) -> None:
        raise ConnectionResetError("cut")

    setattr(world, "after" if arrives else "before", fail)
    assert bot.tell(at(1.9, world)) == 0
    setattr(world, "after" if arrives else "before", lambda due: None)
    assert bot.tell(at(1.9, world)) == 0, "not before a minute has passed"
    world.now += MINUTE * 2
    bot.tell(at(1.9, world))
    assert len(world.said) == 1


def test_a_shut_channel_stops_no_other_and_is_not_asked_again(tmp_path: Path, world: World) -> None:
    bot = Process(tmp_path / "digest.db", world)
    for channel in range(3):
        bot.ledger.keep(wish(channel, alerts=(ALERT, Alert("RTX 4090", 3.0))))

    def refuse(due: Due) -> None:
        if due.subscription.channel == 1:
            raise Refused(403, "Missing Access")

    world.before = refuse
    bot.tell(at(1.9, world))
    world.before = lambda due: None
    world.now += HOUR
    bot.tell(at(1.9, world))
    assert sorted(channel for _, channel, _ in world.said) == [0, 0, 2, 2]
    assert len(bot.ledger.enabled()) == 3, "the daily post counts refusals, a crossing does not"
