"""What to change first, as rows and sentences of a text answer."""

from typing import Any

from bot.answers.ledger import Ledger
from bot.answers.quote import quoted
from bot.texts import name_of, say
from estimator.schema import Estimate, Plan, Step

MOST_SHOWN = 5
COSTS = ("speed_cost", "quality_cost", "money_cost")


class Changes:
    """Steps and plan of the first estimate of an answer."""

    def __init__(self, found: Estimate | None, ledger: Ledger, lang: str) -> None:
        self.steps = found.downgrades if found else []
        self.plan: Plan | None = found.plan if found else None
        self.ledger, self.lang = ledger, lang

    def rows(self, everything: bool = False) -> list[list[str]]:
        """A row a step: number, name, peak, and what it comes to and costs; the most useful ones in a short answer."""
        shown = range(len(self.steps)) if everything else self._most_useful()
        return [self._row(number) for number in shown]

    def _row(self, number: int) -> list[str]:
        path, step = f"estimates[0].downgrades[{number}]", self.steps[number]
        words = [name_of(self.lang, "verdict", step.verdict)] if step.verdict else []
        words += self._costs(step)
        return [self._title(path), self.ledger.gib(f"{path}.allocated_peak"), self._joined(words)]

    def _most_useful(self) -> list[int]:
        """Those of the plan, those that fit, and those that save most, in their own order; one of each hardware."""
        planned = set(self.plan.steps) if self.plan else set()

        def use(number: int) -> tuple[bool, bool, int]:
            step = self.steps[number]
            return step.id in planned, step.verdict == "fits", step.saves

        return sorted(sorted(range(len(self.steps)), key=use, reverse=True)[:MOST_SHOWN])

    def chain(self) -> str:
        """The plan's steps, one after the other."""
        count = len(self.plan.chain) if self.plan else 0
        return " + ".join(self._title(f"estimates[0].plan.chain[{number}]") for number in range(count))

    def needs_hardware(self) -> bool:
        """Whether the plan buys or rents something."""
        return any(step.money_cost != "none" for step in self.plan.chain) if self.plan else False

    def commands(self, steps: bool = False) -> list[tuple[str, list[str]]]:
        """What to type for the plan, or for every step: its name and the lines."""
        if steps:
            paths = [f"estimates[0].downgrades[{number}]" for number in range(len(self.steps))]
        else:
            paths = ["estimates[0].plan"] if self.plan else []
        found = ((path, self.ledger.at(path).commands) for path in paths)
        return [("" if path.endswith("plan") else self._title(path), lines) for path, lines in found if lines]

    def notes(self) -> list[tuple[str, str]]:
        """What each step changes for the result."""
        ending = "_zh" if self.lang == "zh" else ""
        paths = [f"estimates[0].downgrades[{number}]" for number in range(len(self.steps))]
        return [(self._title(path), self.ledger.words(f"{path}.note{ending}")) for path in paths]

    def _title(self, path: str) -> str:
        return quoted(self.ledger.words(f"{path}.title_zh" if self.lang == "zh" else f"{path}.title"))

    def _costs(self, step: Step) -> list[str]:
        found: list[tuple[str, Any]] = [(name, getattr(step, name)) for name in COSTS]
        words = [say(self.lang, f"card.{name}_{size}") for name, size in found if size != "none"]
        return words or [say(self.lang, "steps.free")]

    def _joined(self, words: list[str]) -> str:
        return name_of(self.lang, "sign", "comma").join(words)
