"""Hostile and broken messages for the bot: ``python -m tests.fuzzing 50000 2000 [SEED]`` reads and answers so many.

No exception, nothing over 150 ms of CPU on a warm process, nothing of the message echoed live.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bot import service
from bot.intake.lexicon import lexicon
from bot.intake.understand import understand

DATA = Path(__file__).parent / "data"
MOST_SECONDS = 0.150
TRIES = 4
"""Times that a slow reply is made again before it counts: other programs share the machine."""
LONGEST = 6000

LIVE = re.compile(
    r"@(?:everyone|here)\b|<(?:@[!&]?|#|a?:\w+:|/\w+:|t:)\d+|https?://\S*\.invalid|discord\.gg/|\x1b|\]\(http"
)
"""What a chat would act on: mentions, channels, links of the message, escape sequences."""

PARTS: dict[str, list[str]] = json.loads((DATA / "fuzz.json").read_text("utf-8"))
HOSTILE = PARTS["hostile"]


def _corpus(name: str, *keys: str) -> list[str]:
    """Texts of a data file, whichever of the keys they are under."""
    path = DATA / name
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return [str(row[key]) for row in rows for key in keys if row.get(key)]


def corpus() -> list[str]:
    """Questions, configs and logs as people paste them, cut to a length that tries much in little time."""
    found = [
        *_corpus("messages.jsonl", "text", "input"),
        *_corpus("configs.jsonl", "text"),
        *_corpus("faq.jsonl", "text", "question"),
        *_corpus("oom_reports.jsonl", "input", "text"),
    ]
    return [text[:LONGEST] for text in found]


def phrases() -> list[str]:
    """Every phrase that the grammar knows."""
    return sorted({phrase for group in lexicon()._by_initial.values() for phrase, *_ in group})


def messages(seed: int) -> Iterator[tuple[str, list[str]]]:
    """Messages with what was said before, without end: made of known words, of real pastes broken, of pure junk."""
    source = random.Random(seed)
    texts, known = corpus(), phrases()
    parts = (*PARTS.values(), known, known)

    def made() -> str:
        words = [source.choice(source.choice(parts)) for _ in range(source.randint(1, 12))]
        return source.choice((" ", " ", "", ",", "\n", "，")).join(words)

    def mangled() -> str:
        return mangle(source, source.choice(texts) if texts else made())

    def junk() -> str:
        return "".join(
            chr(source.choice((source.randint(1, 0x250), source.randint(0x3000, 0x9FFF)))) for _ in range(40)
        )

    kinds: tuple[Callable[[], str], ...] = (made, made, made, made, mangled, mangled, junk)
    while True:
        history = [made() for _ in range(source.randint(1, 3))] if source.random() < 0.2 else []
        yield source.choice(kinds)(), history


def mangle(source: random.Random, text: str) -> str:
    """The text with pieces cut out, repeated, moved and filled with what is hostile."""
    for _ in range(source.randint(1, 5)):
        at, end = sorted(source.randint(0, len(text)) for _ in range(2))
        text = source.choice((
            text[:at] + text[end:], text[:at] + source.choice(HOSTILE) + text[at:], text + "\n" + text[at:end],
            text[end:] + text[:at], text[:at].upper() + text[at:], text.replace("\n", " ", 3), text.replace(" ", "", 5),
        ))  # fmt: skip
    return text[:LONGEST]


@dataclass(slots=True)
class Outcome:
    """What was found: messages that raised, were slow or came back live; the slowest reply and how many there were."""

    raised: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    slowest: float = 0.0
    count: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.raised or self.slow or self.live)


Asked = Callable[[str, list[str]], str]


def read(text: str, history: list[str]) -> str:
    """Only understood; nothing is said."""
    understand(text, history)
    return ""


def replied(text: str, history: list[str]) -> str:
    """What the bot says."""
    return service.ask(text, history).text


def fuzzed(count: int, asked: Asked = replied, seed: int = 1, warm: int = 50) -> Outcome:
    """Try ``count`` messages after ``warm`` that only load what is needed."""
    outcome = Outcome()
    source = messages(seed)
    for _ in range(warm):
        asked(*next(source))
    for _ in range(count):
        _try(outcome, asked, *next(source))
    return outcome


def _try(outcome: Outcome, asked: Asked, text: str, history: list[str]) -> None:
    outcome.count += 1
    shown = json.dumps([text[:1500], history], ensure_ascii=True)
    try:
        seconds, reply = _timed(asked, text, history)
        tries = 1
        while seconds > MOST_SECONDS and tries < TRIES:
            seconds, tries = min(seconds, _timed(asked, text, history)[0]), tries + 1
    except Exception as error:
        outcome.raised.append(f"{type(error).__name__}: {error} {shown}")
        return
    outcome.slowest = max(outcome.slowest, seconds)
    if seconds > MOST_SECONDS:
        outcome.slow.append(f"{seconds * 1000:.0f} ms {shown}")
    if found := LIVE.search(reply):
        outcome.live.append(f"{found[0]!r} {shown}")


def _timed(asked: Asked, text: str, history: list[str]) -> tuple[float, str]:
    started = time.process_time()
    reply = asked(text, history)
    return time.process_time() - started, reply


def main() -> int:
    """Fuzz and print what was found; 1 when anything was."""
    to_read, to_answer = int(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    outcomes = {"read": fuzzed(to_read, read, seed), "answered": fuzzed(to_answer, replied, seed)}
    for name, outcome in outcomes.items():
        for kind in ("raised", "slow", "live"):
            for line in getattr(outcome, kind)[:20]:
                print(kind, line)
        found = {kind: len(getattr(outcome, kind)) for kind in ("raised", "slow", "live")}
        print(f"{name}: {outcome.count} messages, {found}, slowest {outcome.slowest * 1000:.0f} ms of CPU", flush=True)
    return 0 if all(outcome.is_clean for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
