"""Exactly once for each channel and local date."""

import itertools
import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.digest.delivery import Refused
from bot.digest.due import Due, due_of, moment_of
from bot.digest.poster import nonce_of
from tests.bot.digest.worlds import Process, World, quickly, wish

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bot(tmp_path: Path, world: World) -> Process:
    made = Process(tmp_path / "digest.db", world)
    made.ledger.keep(wish())
    return made


def test_nothing_before_the_hour_and_once_after_it(bot: Process, world: World) -> None:
    bot.tick()
    assert world.days() == []
    for _ in range(300):
        world.now += MINUTE
        bot.tick()
    assert world.days() == ["2026-03-01"]


def test_a_month_gives_a_post_a_day(bot: Process, world: World) -> None:
    for _ in range(30 * 12):
        world.now += HOUR * 2
        bot.tick()
    assert len(world.days()) == len(set(world.days())) == 30


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Asia/Shanghai", "Australia/Lord_Howe"])
@pytest.mark.parametrize("at", ["00:00", "01:30", "02:30", "09:00", "23:45"])
def test_clock_changes(zone: str, at: str) -> None:
    """A year of quarter hours: each local date is due once, and as one stretch of at most three hours."""
    now = begin = datetime(2026, 2, 20, 0, 5, tzinfo=UTC)
    wanted = wish(zone=zone, at=at, since=begin.timestamp())
    seen: dict[date, list[datetime]] = {}
    for _ in range(366 * 96):
        now += MINUTE * 15
        if due := due_of(wanted, now):
            seen.setdefault(due.day, []).append(now)
    days = sorted(seen)
    assert all(later - earlier == timedelta(days=1) for earlier, later in itertools.pairwise(days))
    assert len(days) in (365, 366, 367)
    assert all(moments[-1] - moments[0] < timedelta(hours=3) for moments in seen.values())


def test_a_time_that_does_not_exist_comes_an_hour_later() -> None:
    wanted = wish(zone="America/New_York", at="02:30")
    assert moment_of(wanted, date(2026, 3, 8)) == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)  # 03:30 there
    assert moment_of(wish(zone="America/New_York", at="01:30"), date(2026, 11, 1)) == datetime(
        2026, 11, 1, 5, 30, tzinfo=UTC
    )


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("down", [1, 15, 100])
def test_a_crash_around_sending_neither_loses_nor_doubles(
    tmp_path: Path, world: World, moment: str, readable: bool, down: int
) -> None:
    first = Process(tmp_path / "digest.db", world)
    first.ledger.keep(wish())
    world.now += MINUTE
    first.dies_in(moment)
    first.ledger.close()
    world.now += MINUTE * down
    world.readable = readable
    second = Process(tmp_path / "digest.db", world)
    for _ in range(60):
        second.tick()
        world.now += MINUTE
    if readable or moment == "after":
        assert world.days() == ["2026-03-01"]
    else:  # nobody can know whether it arrived: a second post is the greater evil
        assert world.days() == []


STEPS = 18
"""A round takes 15 steps: where a process is to end later than that it does not end."""
CLAIMED, SENT = 12, 13
PAIRS = [(first, STEPS) for first in range(STEPS)] + [
    (first, second) for first in (CLAIMED, SENT) for second in range(STEPS)
]
"""After how many steps the first process ends, and the second."""


@pytest.mark.parametrize("readable", [True, False])
def test_a_process_that_ends_anywhere_neither_loses_nor_doubles(tmp_path: Path, readable: bool) -> None:
    """Killed before and after each thing that a round does, and the next process so in its own round."""
    empty = tmp_path / "empty.db"
    begin = Process(empty, World())
    begin.dies(lambda: begin.ledger.keep(wish()))
    lived = 0
    for first, second in PAIRS:
        path = Path(shutil.copy(empty, tmp_path / f"{first}-{second}.db"))
        world = World(now=datetime(2026, 3, 1, 9, 1, tzinfo=UTC), readable=readable)
        for steps in (first, second, None, None):
            bot = Process(path, world, steps=steps)
            ended = bot.dies(bot.tick)
            lived += steps == first and not ended
            world.now += MINUTE * 11
        assert len(world.days()) == 1 or not readable, (first, second)
        assert len(world.days()) <= 1, (first, second)
    assert 0 < lived < len(PAIRS) / 2


def test_two_processes_post_once(tmp_path: Path, world: World) -> None:
    bots = [Process(tmp_path / "digest.db", world) for _ in range(2)]
    for channel in range(20):
        bots[0].ledger.keep(wish(channel))
    for _ in range(5):
        world.now += MINUTE
        for bot in bots:
            bot.tick()
    assert [world.days(channel) for channel in range(20)] == [["2026-03-01"]] * 20


def test_an_outage_of_less_than_three_hours_is_caught_up(bot: Process, world: World) -> None:
    world.now += HOUR * 2
    bot.tick()
    assert world.days() == ["2026-03-01"]


def test_a_longer_one_is_skipped_and_known(bot: Process, world: World) -> None:
    world.now += HOUR * 24 * 3 + HOUR * 4
    assert bot.tick().skipped >= 4
    assert world.days() == []
    world.now += HOUR * 21
    bot.tick()
    assert world.days() == ["2026-03-05"]
    assert bot.ledger.skipped_since(1, "2026-02-28") == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]


def test_what_was_due_before_the_digest_was_set_up_is_not_owed(tmp_path: Path, world: World) -> None:
    bot = Process(tmp_path / "digest.db", world)
    world.now += HOUR
    bot.ledger.keep(wish(since=world.now.timestamp()))
    assert bot.tick().skipped == 0
    assert world.days() == []


def test_moving_the_hour_gives_no_second_post(bot: Process, world: World) -> None:
    world.now += MINUTE
    bot.tick()
    bot.ledger.keep(wish(at="10:00", zone="Europe/Berlin", since=0.0))
    for _ in range(20):
        world.now += HOUR / 2
        bot.tick()
    assert world.days() == ["2026-03-01"]


@pytest.mark.parametrize("readable", [True, False])
def test_what_was_posted_is_not_posted_by_hand_later(bot: Process, world: World, readable: bool) -> None:
    world.now += MINUTE
    bot.tick()
    world.readable = readable
    world.now += HOUR
    day = date(2026, 3, 1)
    tally, _ = quickly(bot.poster.post_now(Due(wish(), day, world.now)))
    assert (tally.posted, tally.found) == (0, 0)
    post = bot.ledger.post(1, day)
    assert world.days() == ["2026-03-01"] and post is not None and post.state == "posted"


def test_a_cut_connection_is_looked_into(bot: Process, world: World) -> None:
    def cut(due: Due) -> None:
        raise ConnectionResetError("cut")

    world.after = cut
    world.now += MINUTE
    assert bot.tick().open == 1
    world.after = lambda due: None
    world.now += MINUTE * 2
    assert bot.tick().found == 1
    assert world.days() == ["2026-03-01"]


def test_refusals_switch_a_channel_off_and_tell_once(bot: Process, world: World) -> None:
    def refuse(due: Due) -> None:
        raise Refused(403, "Missing Access")

    world.before = refuse
    for _ in range(6 * 24):
        world.now += HOUR
        bot.tick()
    assert world.told == [9]
    assert bot.ledger.enabled() == []
    wanted = bot.ledger.wanted(1)
    assert wanted is not None
    assert (wanted.enabled, wanted.failures) == (False, 3)


@pytest.mark.parametrize("status", [400, 401, 413])
def test_other_faults_never_switch_a_channel_off(bot: Process, world: World, status: int) -> None:
    def refuse(due: Due) -> None:
        raise Refused(status, "Bad Request")

    world.before = refuse
    for _ in range(6 * 24):
        world.now += HOUR
        bot.tick()
    assert world.told == []
    assert [one.failures for one in bot.ledger.enabled()] == [0]


def test_a_post_in_between_makes_refusals_begin_anew(bot: Process, world: World) -> None:
    def refuse(due: Due) -> None:
        if due.day.day % 3:
            raise Refused(403, "Missing Access")

    world.before = refuse
    for _ in range(20 * 24):
        world.now += HOUR
        bot.tick()
    assert world.told == [] and len(bot.ledger.enabled()) == 1


def test_whose_owner_cannot_be_told_is_switched_off_all_the_same(bot: Process, world: World) -> None:
    def refuse(due: Due) -> None:
        raise Refused(404, "Unknown Channel")

    async def shut(*_: object) -> None:
        raise Refused(403, "Cannot send messages to this user")

    world.before, world.switched_off = refuse, shut  # type: ignore[method-assign]
    for _ in range(4 * 24):
        world.now += HOUR
        bot.tick()
    assert bot.ledger.enabled() == []


@pytest.mark.parametrize("state", ["skipped", "refused", "unknown"])
def test_what_was_skipped_or_refused_is_posted_when_somebody_asks(
    bot: Process, world: World, state: Literal["skipped", "refused", "unknown"]
) -> None:
    world.now += HOUR
    today = world.now.date()
    bot.ledger.skip([(1, today)], world.now.timestamp())
    bot.ledger.settle(1, today, state, world.now.timestamp())
    bot.tick()
    assert world.days() == []
    due = Due(wish(), today, world.now)
    asked = [quickly(bot.poster.post_now(due))[0].posted for _ in range(2)]
    assert asked == ([0, 0] if state == "unknown" else [1, 0])  # what may have arrived is not sent again
    assert len(world.days()) == sum(asked)


def test_one_bad_channel_never_stops_the_others(tmp_path: Path, world: World) -> None:
    bot = Process(tmp_path / "digest.db", world)
    for channel in range(9):
        bot.ledger.keep(wish(channel))
    faults = {0: Refused(404, "gone"), 1: ZeroDivisionError(), 2: TimeoutError(), 3: OSError()}

    def fail(due: Due) -> None:
        if due.subscription.channel in faults:
            raise faults[due.subscription.channel]

    world.before = fail
    world.now += MINUTE
    tally = bot.tick()
    assert (tally.posted, tally.refused, tally.open) == (5, 1, 3)


def test_two_thousand_channels_in_a_minute(tmp_path: Path, world: World) -> None:
    """In virtual time: 25 a second, no server's second channel before another's first."""
    bot = Process(tmp_path / "digest.db", world)
    order: list[int] = []
    times: list[float] = []
    for number in range(2_000):
        bot.ledger.keep(wish(number, guild=0 if number < 200 else number))
    world.now += MINUTE

    async def send(due: Due, content: str, nonce: str) -> int:
        import asyncio

        times.append(asyncio.get_running_loop().time())
        order.append(due.subscription.guild)
        await asyncio.sleep(0.4)
        return 1

    bot.poster.discord.send = send  # type: ignore[method-assign]
    tally, seconds = quickly(bot.poster.round())
    assert tally.posted == 2_000
    assert seconds < 85
    assert max(Counter(int(moment) for moment in times).values()) <= 26
    assert len(set(order[:1_801])) == 1_801


def test_nonces_are_short_and_differ() -> None:
    found = {nonce_of(channel, date(2026, 1, day)) for channel in range(50) for day in range(1, 29)}
    assert len(found) == 1_400
    assert all(len(one) <= 25 for one in found)


class Crashes(RuleBasedStateMachine):
    """Any order of hours, crashes, cuts, restarts and a second process."""

    @initialize(
        zone=st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]), at=st.sampled_from(["02:30", "09:00"])
    )
    def begin(self, zone: str, at: str) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "digest.db"
        self.world = World(now=datetime(2026, 3, 7, tzinfo=UTC))
        self.bots = [Process(self.path, self.world) for _ in range(2)]
        self.bots[0].ledger.keep(wish(zone=zone, at=at, since=self.world.now.timestamp()))

    @rule(minutes=st.integers(1, 400))
    def pass_time(self, minutes: int) -> None:
        self.world.now += MINUTE * minutes

    @rule(which=st.integers(0, 1))
    def tick(self, which: int) -> None:
        self.bots[which].tick()

    @rule(which=st.integers(0, 1), moment=st.sampled_from(["before", "after"]))
    def crash(self, which: int, moment: str) -> None:
        self.bots[which].dies_in(moment)
        self.bots[which].ledger.close()
        self.bots[which] = Process(self.path, self.world)

    @rule(which=st.integers(0, 1), moment=st.sampled_from(["before", "after"]))
    def cut(self, which: int, moment: str) -> None:
        def broken(due: Due) -> None:
            raise ConnectionResetError

        setattr(self.world, moment, broken)
        self.bots[which].tick()
        setattr(self.world, moment, lambda due: None)

    @rule()
    def hide(self) -> None:
        self.world.readable = not self.world.readable

    @invariant()
    def never_twice(self) -> None:
        if hasattr(self, "world"):
            days = self.world.days()
            assert len(days) == len(set(days)), days

    def teardown(self) -> None:
        if hasattr(self, "bots"):
            for bot in self.bots:
                bot.ledger.close()
            self.folder.cleanup()


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
