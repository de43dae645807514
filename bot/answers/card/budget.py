"""What goes first when a card would be too long, and that the card says so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.answers.card.shape import MOST_TEXT, Card
from bot.answers.card.voice import Voice

LONGEST_LINE = 600
FOOTER = 6
"""Assumptions go before anything else: the math has them with their sources."""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of a card; those of the highest ``rank`` are left out first, those of rank 0 never."""

    rank: int
    lines: tuple[str, ...]
    heading: str = ""

    @property
    def text(self) -> str:
        """The lines under their heading; empty without lines."""
        return "\n".join([*([self.heading] if self.heading else []), *self.lines]) if self.lines else ""


def filled(card: Card, voice: Voice, sections: Sequence[Section], footer: Sequence[str]) -> Card:
    """The card with as much of its sections and its small print as there is room for."""
    small = Section(FOOTER, tuple(f"-# {line}" for line in footer))
    room = MOST_TEXT - card.length - len(voice.answer.said) - len(left_out(voice, 1_000)) - 1
    (*shown, small), out = kept([*sections, small], room)
    lines = [*small.lines, *([left_out(voice, out)] if out else [])]
    return replace(card, sections=tuple(one.text for one in shown if one.text), footer="\n".join(lines))


def left_out(voice: Voice, lines: int) -> str:
    """That lines were left out, and where they are."""
    return "-# " + voice.say("left_out", lines=lines)


def kept(sections: Sequence[Section], room: int) -> tuple[list[Section], int]:
    """The sections within so many characters, and how many lines were left out."""
    found = [Section(one.rank, tuple(map(shortened, one.lines)), one.heading) for one in sections]
    out = 0
    while sum(len(one.text) for one in found) > room:
        last = max((one for one in found if one.lines and one.rank), key=lambda one: one.rank, default=None)
        if last is None:
            break
        found[found.index(last)] = Section(last.rank, last.lines[:-1], last.heading)
        out += 1
    return found, out


def shortened(line: str) -> str:
    """A line that is no longer than a paragraph."""
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1].rstrip() + "…"
