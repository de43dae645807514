"""What to change first, as rows and sentences of a text answer."""

from bot.answer import Answer
from bot.answers.describe import Describer
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted
from bot.answers.useful import most_useful
from bot.texts import name_of, say
from estimator.schema import Estimate, Run, Step
from estimator.serving.engines import is_served

MOST_SHOWN = 5
LONGEST_TITLE = 60
LEAST_HOST = 16 * 2**30
"""Bytes of the computer's own memory that are worth words: less is there anyway."""
COSTS = ("speed_cost", "quality_cost", "money_cost")


class Changes:
    """Steps and plan of one of an answer's estimates, in its language."""

    def __init__(self, found: Estimate | None, ledger: Ledger, lang: str, index: int = 0) -> None:
        self.path, self.found = f"estimates[{index}]", found
        self.steps = found.downgrades if found else []
        self.plan = found.plan if found else None
        self.ledger, self.lang = ledger, lang
        run = found.run if found else None
        self.served = run is not None and is_served(run)
        self.tool = quoted((run.framework if run.task == "train" else run.engine) or "") if run else ""

    def rows(self, everything: bool = False) -> list[list[str]]:
        """A row a step: name, peak, saving, verdict and costs; the most useful ones in a short answer."""
        return [self._row(number) for number in (range(len(self.steps)) if everything else self._most_useful())]

    def _row(self, number: int) -> list[str]:
        path, step = self._step(number), self.steps[number]
        words = [name_of(self.lang, "verdict", step.verdict)] if step.verdict else []
        host = [self._host(f"{path}.host_ram")] if step.host_ram >= LEAST_HOST else []
        told = name_of(self.lang, "sign", "comma").join([*words, *self._costs(step), *host])
        saved = "-" + self.ledger.gib(f"{path}.saves") if step.saves else ""
        return [self._title(path), self.ledger.gib(f"{path}.allocated_peak"), saved, told]

    def _most_useful(self) -> list[int]:
        return most_useful(self.found, MOST_SHOWN) if self.found else []

    def _costs(self, step: Step) -> list[str]:
        found = [(name, getattr(step, name)) for name in COSTS]
        words = [say(self.lang, f"card.{name}_{size}") for name, size in found if size != "none"]
        return words or [say(self.lang, "steps.free")]

    def _title(self, path: str) -> str:
        return quoted(self.ledger.words(f"{path}.title_zh" if self.lang == "zh" else f"{path}.title"), LONGEST_TITLE)

    def chain(self) -> str:
        """The plan's steps, one after the other."""
        count = len(self.plan.chain) if self.plan else 0
        return " + ".join(self._title(f"{self.path}.plan.chain[{number}]") for number in range(count))

    def _host(self, path: str) -> str:
        return say(self.lang, "card.host", size=self.ledger.gib(path))

    def plan_host(self) -> str:
        """What the computer's own memory must hold with the plan, where it is more than before."""
        more = self.plan is not None and self.plan.host_ram >= LEAST_HOST
        return name_of(self.lang, "sign", "comma") + self._host(f"{self.path}.plan.host_ram") if more else ""

    def plan_heading(self, hardware: str, here: str) -> str:
        """One of two beginnings: whether the plan needs other hardware, or fits the card as it is."""
        bought = any(step.money_cost != "none" for step in self.plan.chain) if self.plan else False
        return hardware if bought else here

    def plan_commands(self) -> list[str]:
        """What to type for the plan."""
        count = len(self.plan.commands) if self.plan else 0
        return [self.ledger.words(f"{self.path}.plan.commands[{number}]") for number in range(count)]

    def notes(self) -> list[list[str]]:
        """What each step changes for the result."""
        note = "note_zh" if self.lang == "zh" else "note"
        return [
            [self._title(self._step(number)), self.ledger.words(f"{self._step(number)}.{note}")]
            for number in range(len(self.steps))
        ]

    def typed(self) -> list[list[str]]:
        """A row for each line that a step is typed as; the first names the step."""
        rows = []
        for number, step in enumerate(self.steps):
            for line in range(len(step.commands)):
                title = "" if line else self._title(self._step(number))
                rows.append([title, self.ledger.words(f"{self._step(number)}.commands[{line}]")])
        return rows or [["-", "-"]]

    def _step(self, number: int) -> str:
        return f"{self.path}.downgrades[{number}]"


def plans(answer: Answer, ledger: Ledger, describer: Describer) -> list[tuple[str, str]]:
    """Of several runs, those that a plan makes fit: what tells the run from the others, and the plan's steps.

    A plan that ends in another of the runs, which fits anyway, says nothing new.
    """
    fitting = [_kind(one.run) for one in answer.estimates if one.run and one.fit.verdict == "fits"]
    found = [(index, one) for index, one in enumerate(answer.estimates) if one.plan and one.plan.run]
    new = [(index, one) for index, one in found if one.plan and one.plan.run and _kind(one.plan.run) not in fitting]
    return [(describer.label(index), Changes(one, ledger, answer.lang, index).chain()) for index, one in new]


def _kind(run: Run) -> tuple[object, ...]:
    return str(run.model), run.task, run.method, run.gpu
