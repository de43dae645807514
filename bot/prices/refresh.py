"""Asking all sources, each by itself: one that is slow, broken or gone neither blocks nor empties the others."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.prices.history import History
from bot.prices.sources import Fetched, Source, SourceFailed
from bot.prices.sources.gpuhunt import GpuHunt
from bot.prices.sources.skypilot import CLOUDS, URL, SkyPilot
from bot.prices.sources.table import table_in

log = logging.getLogger("bot.prices")
SECONDS_FOR_ALL = 330.0
"""Enough for every source to take its minute, four at a time: slow ones leave the others theirs."""
HOURS_BETWEEN, JITTER = 6.0, 0.2
"""Catalogues are published hourly to daily; asked at uneven times, so that many bots do not ask at once."""
AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a source fared: ok, unchanged or failed, with a sentence where it failed."""

    source: str
    status: str
    sentence: str = ""


def sources_of(names: Sequence[str], folder: Path, table: Path | None = None, base: str = URL) -> list[Source]:
    """The sources of these names ("gpuhunt", "skypilot"), and the administrator's table where there is one."""
    found: list[Source] = []
    own = table_in(folder, table)
    if own is not None:
        found.append(own)
    if "gpuhunt" in names:
        found.append(GpuHunt())
    if "skypilot" in names:
        found += [SkyPilot(cloud, base) for cloud in CLOUDS]
    return found


def refresh(
    sources: Sequence[Source],
    history: History,
    clock: Callable[[], float] = time.time,
    seconds: float = SECONDS_FOR_ALL,
) -> list[Outcome]:
    """Ask every source and write down what it said. A source that has not answered in time counts as failed."""
    marks = {source.name: history.etag(source.name) for source in sources}
    answers: dict[str, Fetched | SourceFailed | None] = {}
    threads = _asked(sources, marks, answers, datetime.fromtimestamp(clock(), UTC))
    until = time.monotonic() + seconds
    outcomes = []
    for source, thread in zip(sources, threads, strict=True):
        thread.join(max(0.0, until - time.monotonic()))
        answer = answers.get(source.name, SourceFailed(f"{source.name} did not answer in {seconds:.0f} s"))
        outcomes.append(_written(history, source.name, answer, clock()))
    history.prune(clock())
    return outcomes


def next_in_seconds(random_number: Callable[[], float] = random.random) -> float:
    """How long to wait until the next time, jittered."""
    return HOURS_BETWEEN * 3_600 * (1 + JITTER * (2 * random_number() - 1))


def _asked(
    sources: Sequence[Source], marks: dict[str, str], answers: dict[str, Fetched | SourceFailed | None], now: datetime
) -> list[threading.Thread]:
    """A thread for each source, a few of them at work at a time; daemons, so that a stuck one holds no stop up."""
    gate = threading.Semaphore(AT_A_TIME)

    def ask(source: Source) -> None:
        with gate:
            try:
                answers[source.name] = source.fetch(now, marks[source.name])
            except SourceFailed as error:
                answers[source.name] = error
            except Exception as error:
                log.exception("%s: a fault of ours", source.name)
                answers[source.name] = SourceFailed(f"{source.name}: {type(error).__name__}")

    threads = [threading.Thread(target=ask, args=(source,), name=source.name, daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    return threads


def _written(history: History, name: str, answer: Fetched | SourceFailed | None, now: float) -> Outcome:
    if isinstance(answer, SourceFailed):
        log.warning("%s", answer)
        history.failed(name, str(answer), now)
        return Outcome(name, "failed", str(answer))
    history.record(name, answer, now)
    if answer is not None and answer.left_out:
        log.info("%s: %d rows left out", name, sum(answer.left_out.values()))
    return Outcome(name, "unchanged" if answer is None else "ok")
