"""The words of a card: sentences from the templates and names in the answer's language."""

import re

from bot.answer import Answer
from bot.answers.describe import Describer, problem_in
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted
from bot.answers.render import environment
from bot.texts import name_of, say
from estimator.schema import Estimate, PerGpu, Range

GIB = 2**30
_BRACKETS = re.compile(r" \(.*\)$|（.*）$")
LONGEST_NOTE = 300
LONGEST_HEADLINE = 240


class Voice:
    """One answer's words in a language."""

    def __init__(self, answer: Answer, lang: str | None = None) -> None:
        self.lang = lang or answer.lang
        self.answer = answer if self.lang == answer.lang else answer.model_copy(update={"lang": self.lang})
        self.ledger = Ledger(self.answer)
        self.describer = Describer(self.answer, self.ledger)

    def template(self, name: str) -> list[str]:
        """The lines of a template of an answer with one estimate."""
        template = environment(self.lang).get_template(f"{name}.j2")
        found = self.answer.estimates[0] if self.answer.estimates else None
        text = template.render(a=self.answer, n=self.ledger, d=self.describer, e=found)
        return [line for line in text.splitlines() if line.strip()]

    def say(self, key: str, **values: object) -> str:
        """A short text of cards."""
        return say(self.lang, f"card.{key}", **values)

    def name(self, section: str, key: str) -> str:
        """What a value is called."""
        return name_of(self.lang, section, key)

    def title(self, index: int = 0) -> str:
        """Model, way and cards of a run on one line."""
        d = self.describer
        parts = [d.model(index), d.way(index), d.cards(index)]
        return self.line(" · ".join(part for part in parts if part), LONGEST_HEADLINE)

    def label(self, index: int) -> str:
        """What tells a run from the others, without what its model stands for."""
        model = self.describer.model(index)
        label = self.describer.label(index).replace(model, _BRACKETS.sub("", model))
        return label or f"{index + 1}."

    def span(self, found: Range) -> str:
        """From the least to the most in GiB; one number where both read the same."""
        low, high = coarse(found.low), coarse(found.high)
        return low if low == high else f"{low}{'–' if self.lang == 'zh' else '-'}{high}"

    def line(self, text: str, longest: int = LONGEST_NOTE) -> str:
        """A sentence of the estimator on one line, with whatever a user may have put into it made harmless."""
        return quoted(text, longest)

    def verdict(self, found: str | None) -> str:
        """A verdict as the end of a sentence; empty where none is given."""
        return self.say("ending", verdict=self.name("verdict", found)) if found else ""

    def joined(self, parts: list[str]) -> str:
        """Parts of one sentence."""
        return self.name("sign", "semicolon").join(parts)

    def problem(self, found: Estimate) -> str:
        """Why there is no estimate."""
        return problem_in(self.lang, found)


def gib(size: float) -> str:
    """Bytes in GiB without the unit, fine enough that the rows of a table add up."""
    value = size / GIB
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def coarse(size: float) -> str:
    """Bytes in GiB without the unit, as sentences tell them."""
    return f"{size / GIB:,.1f}" if size >= 0.995 * GIB else gib(size)


def per_gpu(found: Estimate) -> PerGpu:
    """What one card holds, of an estimate that has it."""
    if found.per_gpu is None:
        raise ValueError("an estimate that failed has no memory to show")
    return found.per_gpu
