"""From a move that was made to the step that is told: texts, costs, the change and the flags."""

from collections.abc import Callable
from typing import Any

from estimator import defaults
from estimator.catalogue import find_gpu
from estimator.downgrades.change import applied, difference
from estimator.downgrades.facts import facts, table
from estimator.downgrades.figures import effective_batch, figures
from estimator.downgrades.flags import commands
from estimator.downgrades.search import Made
from estimator.downgrades.training import completion_of
from estimator.regimes import adapted
from estimator.schema import Run, Step
from estimator.serving.engines import is_served

GIB = 1 << 30
DECIDING = defaults.DECIDING | {"gpu", "gpu_count", "parallel", "autocast"}
"""Fields from which others are filled."""


class Told:
    """One move in words: its facts, those for runs like this one first."""

    def __init__(self, made: Made) -> None:
        run = made.run
        self.facts = facts(made.move)
        self.variants = [
            *(["adapted"] if run.task == "train" and adapted(made.before) else []),
            *(["larger"] if made.move == "cards" and run.gpu != made.before.gpu else []),
            *_kinds_of_card(made),
            *_kinds_of_sharing(run),
            *(["online"] if made.move == "length" and completion_of(run) else []),
            *(["packed"] if run.packing else []),
            *(["grown"] if effective_batch(run) > effective_batch(made.before) else []),
            *(["quantised"] if run.task == "train" and run.weight_format else []),
            *([run.weight_format] if run.weight_format else []),
        ]
        before, before_zh = table()["method"].get(made.before.method, ("", ""))
        size = _size(made)
        named = {"method_before": before, "method_before_zh": before_zh, "size": size, "article": article(size)}
        self.figures = figures(run) | named | {"gpu": run.gpu}

    def text(self, key: str, default: str = "") -> str:
        """A text or a cost with its figures filled in."""
        found = next((self.facts[f"{key}_{one}"] for one in self.variants if f"{key}_{one}" in self.facts), None)
        template: str = found if found is not None else self.facts.get(key, default)
        return template.format_map(self.figures)

    def note(self, key: str, host: int) -> str:
        """A note with what the computer's own memory must hold."""
        told = self.text(key)
        return told + str(table()["host"][key]).format(gib=max(round(host / GIB), 1)) if host else told


def _size(made: Made) -> str:
    other = made.run.gpu if made.run.gpu != made.before.gpu else None
    return f"{find_gpu(other).nominal_gb:g}" if isinstance(other, str) else ""


def _kinds_of_sharing(run: Run) -> list[str]:
    """Whether experts are dealt out among cards, and nothing else is."""
    if run.parallel is None or run.parallel.expert == 1:
        return []
    return [*(["dealt"] if run.parallel.tensor == 1 else []), "experts"]


def _kinds_of_card(made: Made) -> list[str]:
    """Whether another card has a name of its own, and whether several are needed."""
    gpu = made.run.gpu
    if made.move != "card" or not isinstance(gpu, str):
        return []
    several = ["several"] if (made.run.gpu_count or 1) > 1 else []
    named = [] if find_gpu(gpu).kind == "class" else ["named"]
    return [*(["several_named"] if several and named else []), *several, *named]


def article(size: str) -> str:
    """Of a number that is read aloud: an 8, an 11, an 18, an 80."""
    return "an" if size.startswith("8") or size in ("11", "18") else "a"


def step(made: Made, change: dict[str, Any]) -> Step:
    """The step for a move; ``change`` is what it changes."""
    told = Told(made)
    suffix = told.text("suffix")
    host = made.outcome.host if made.outcome.host > made.was.host else 0
    return Step.model_validate(
        {
            "id": f"{made.move}-{suffix.lower()}" if suffix else made.move,
            "title": told.text("title"),
            "title_zh": told.text("title_zh"),
            "note": told.note("note", host),
            "note_zh": told.note("note_zh", host),
            "change": change,
            "allocated_peak": made.outcome.allocated,
            "device_peak": made.outcome.range,
            "saves": max(made.was.allocated - made.outcome.allocated, 0),
            "speed_cost": told.text("speed"),
            "quality_cost": told.text("quality"),
            "money_cost": told.text("money", "none"),
            "verdict": made.outcome.verdict,
            "host_ram": host,
            "commands": commands(made.run, change),
        }
    )


def only_the_card(before: Run, after: Run, change: dict[str, Any]) -> bool:
    """Whether nothing but the card changes, and both compute in the same types: the same defaults hold on both."""
    names = [run.gpu for run in (before, after) if run.gpu]
    types = {find_gpu(one if isinstance(one, str) else one[0]).bf16 for one in names}
    return set(change) == {"gpu"} and len(types) == 1


class Pinner:
    """Changes that lead to the same run from the filled run and from the run as it was asked."""

    def __init__(self, asked: Run, refill: Callable[[Run], Run]) -> None:
        self.asked, self.refill = asked, refill

    def change(self, before: Run, after: Run) -> dict[str, Any]:
        """The partial run from ``before`` to ``after``, defaults that would else follow it stated."""
        change = difference(before, after)
        if not is_served(before) and (DECIDING.isdisjoint(change) or only_the_card(before, after, change)):
            return change
        again = self.refill(applied(self.asked, change))
        return change if again == after else merged(change, difference(again, after))


def merged(change: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both changes in one, ``more`` the later."""
    both = dict(change)
    for name, value in more.items():
        known = both.get(name)
        both[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return both
