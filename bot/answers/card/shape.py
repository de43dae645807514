"""What a card is: text, picture and buttons as plain data, within Discord's limits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from estimator.schema import Verdict

MOST_TEXT = 3_900
"""Characters of text in a card; Discord takes 4,000 in a message with components."""
MOST_ACTIONS = 15
"""Buttons of a card: three rows of five."""
LONGEST_LABEL = 34
"""Columns of a button's label that a phone shows."""
LONGEST_ALT = 1_024
"""Characters of a picture's alternative text."""

Kind = Literal["verdict", "comparison", "question", "problem", "help", "math", "flags", "refuse", "cost", "told"]
ActionKind = Literal["apply", "what_if", "math", "flags", "reading", "example"]

COLOURS: dict[Verdict | None, int] = {"fits": 0x2E9E5B, "tight": 0xE0A100, "does_not_fit": 0xD83C3E, None: 0x80848E}
"""RGB of the card's edge: green, amber, red, and grey where nothing is judged."""


@dataclass(frozen=True, slots=True)
class Action:
    """A button. ``argument`` is short ASCII, fit for a custom id; ``change`` is the partial Run that it brings.

    apply: a step's id, or "plan" for the whole chain. what_if: "field=value". math, flags and reading: the number of
    the run in the answer. example: the number of the help's example.
    """

    kind: ActionKind
    label: str
    argument: str = "0"
    change: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """An SVG that becomes a PNG when asked for, and what it shows in words (at most 1,024 characters)."""

    alt: str
    draw: Callable[[], str]
    name: str = "memory.png"

    @cached_property
    def svg(self) -> str:
        """The drawing."""
        return self.draw()

    @cached_property
    def png(self) -> bytes:
        """The drawing as pixels, 800 wide; takes 40 to 100 ms and holds the interpreter meanwhile."""
        from bot.answers.card.fonts import pixels

        return pixels(self.svg)


@dataclass(frozen=True)
class Card:
    """One message: texts in Discord's markdown in the order to show, a picture after the first, buttons below."""

    kind: Kind
    headline: str
    verdict: Verdict | None = None
    lead: str = ""
    table: str = ""
    sections: tuple[str, ...] = ()
    footer: str = ""
    picture: Picture | None = None
    actions: tuple[Action, ...] = ()

    @property
    def colour(self) -> int:
        """RGB of the card's edge; the verdict also stands in ``lead`` in words."""
        return COLOURS[self.verdict]

    @property
    def head(self) -> str:
        """Headline and lead, the text above the picture."""
        return f"### {self.headline}\n{self.lead}".rstrip()

    @property
    def below(self) -> tuple[str, ...]:
        """The texts below the picture, one display each."""
        return tuple(text for text in (self.table, *self.sections, self.footer) if text)

    @property
    def length(self) -> int:
        """Characters of text that count against Discord's 4,000."""
        return sum(len(text) for text in (self.head, *self.below))
