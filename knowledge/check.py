"""What is wrong with the entries as written, for the tests and whoever edits them: ``python -m knowledge.check``."""

import sys
from collections.abc import Iterator
from importlib.resources import files

from knowledge.case import NAMES
from knowledge.facts import Facts, holds, names_in
from knowledge.grammar import shared_words
from knowledge.logs.families import families
from knowledge.logs.phase import phases
from knowledge.phrases import phrase
from knowledge.ranking import HALF, LEAST
from knowledge.reading import Entry, entries, parsed
from knowledge.telling import PLACE

CLAIMS = 36
"""Claims of the three documents."""
SIGNAL = {"weight", "says", "facts", "beside", "unless"}
NOTHING = Facts({}, {})


def problems() -> list[str]:
    """One sentence for each fault: of form, of reference, or an entry that nothing reaches."""
    broken = list(_unreadable()) or list(_unwritten())
    if broken:
        return broken
    found = [problem for entry in entries().values() for problem in _of_entry(entry)]
    judged = {number for entry in entries().values() for number in entry.claims}
    return found + [f"claim {number} is judged by no entry" for number in sorted(set(range(1, CLAIMS + 1)) - judged)]


def _unreadable() -> Iterator[str]:
    for path in files("knowledge.entries").iterdir():
        if path.name.endswith(".md"):
            try:
                entry = parsed(path.read_text("utf-8"))
                _ = entry.evidence, entry.questions  # compiled here, so that what is no phrase is told
            except (ValueError, KeyError) as error:
                yield f"{path.name}: {error}"
                continue
            if f"{entry.id}.md" != path.name:
                yield f"{path.name}: its id is {entry.id}"


def _unwritten() -> Iterator[str]:
    """Words that are no phrases, and topics that are no words."""
    for name, words in shared_words().items():
        for one in words:
            try:
                phrase(one)
            except (ValueError, KeyError) as error:
                yield f"words.toml: {name}: {error}"
    for entry in entries().values():
        for name in {name for row in entry.topics for name in row} - shared_words().keys():
            yield f"{entry.id}: {name} is no list of words.toml"


def _of_entry(entry: Entry) -> Iterator[str]:
    yield from (f"{entry.id}: refers to {other}, which is no entry" for other in entry.see if other not in entries())
    yield from (f"{entry.id}: {phase} is no phase" for phase in entry.phases if phase not in phases())
    for row in entry.signals:
        yield from (f"{entry.id}: a signal has no {key}" for key in row.keys() - SIGNAL)
    for comparison in _comparisons(entry):
        yield from (f"{entry.id}: {name} is no fact" for name in names_in(comparison) if name not in _known())
        holds(comparison, NOTHING)
    for text in (*entry.fixes, *entry.useless):
        for one in text.says:
            phrase(one)
        for said in (text.en, text.zh):
            yield from (f"{entry.id}: {name} is no fact" for name in PLACE.findall(said) if name not in _known())
    if not _is_reached(entry):
        yield f"{entry.id}: no signal and no question reaches it"


def _comparisons(entry: Entry) -> Iterator[str]:
    for signal in entry.evidence:
        yield from signal.facts
    for text in (*entry.fixes, *entry.useless):
        yield from text.facts


def _is_reached(entry: Entry) -> bool:
    """Whether any one signal makes a cause worth naming; other entries are found by questions."""
    if entry.kind == "cause":
        return any(signal.weight / (signal.weight + HALF) >= LEAST for signal in entry.evidence if signal.weight > 0)
    return bool(entry.questions)


def _known() -> frozenset[str]:
    return frozenset(NAMES) | {name for family in families() for name in family.names}


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
