"""How often one person may ask."""

from bot.discord import pace
from bot.discord.pace import QUESTIONS, SECONDS, Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_answered_then_the_person_waits() -> None:
    clock = Clock()
    paced = Pace(clock)
    assert [paced.wait(1) for _ in range(QUESTIONS)] == [0.0] * QUESTIONS
    clock.now = 10.0
    assert paced.wait(1) == SECONDS - 10 and paced.wait(2) == 0.0
    clock.now = SECONDS
    assert paced.wait(1) == 0.0


def test_waiting_is_told_once_until_the_next_answer() -> None:
    clock = Clock()
    paced = Pace(clock)
    for _ in range(QUESTIONS):
        paced.wait(1)
    assert paced.first_time(1) and not paced.first_time(1)
    clock.now = SECONDS
    paced.wait(1)
    assert paced.first_time(1)


def test_people_unseen_for_long_take_no_memory() -> None:
    paced = Pace(Clock())
    for person in range(pace.MOST_PEOPLE + 50):
        paced.wait(person)
    assert len(paced._asked) == pace.MOST_PEOPLE
