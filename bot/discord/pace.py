"""How often one person may ask."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

QUESTIONS, SECONDS = 12, 30.0
MOST_PEOPLE = 10_000


class Pace:
    """At most ``QUESTIONS`` in any ``SECONDS`` from one person; people unseen for long are let go."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: OrderedDict[int, deque[float]] = OrderedDict()
        self._told: set[int] = set()

    def wait(self, person: int) -> float:
        """0 when the person may ask now, which then counts; else the seconds until they may."""
        now = self._clock()
        times = self._asked.setdefault(person, deque())
        self._asked.move_to_end(person)
        while times and now - times[0] >= SECONDS:
            times.popleft()
        if len(times) >= QUESTIONS:
            return SECONDS - (now - times[0])
        times.append(now)
        self._told.discard(person)
        self._drop_the_unseen()
        return 0.0

    def first_time(self, person: int) -> bool:
        """Whether the person, who must wait, has not been told so since they last could ask."""
        if person in self._told:
            return False
        self._told.add(person)
        return True

    def _drop_the_unseen(self) -> None:
        while len(self._asked) > MOST_PEOPLE:
            gone, _ = self._asked.popitem(last=False)
            self._told.discard(gone)
