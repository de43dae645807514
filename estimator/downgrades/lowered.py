"""What a run that does not surely fit can be changed to: ranked steps, and the cheapest plan."""

from typing import Any

from estimator.downgrades.around import Around, Outcome
from estimator.downgrades.change import applied
from estimator.downgrades.facts import ranks, table
from estimator.downgrades.flags import commands
from estimator.downgrades.moves import HARDWARE, moves_of
from estimator.downgrades.search import Made, Search, chain, singles
from estimator.downgrades.steps import Pinner, merged, step
from estimator.schema import Plan, Run, Step

LEAST_SAVED = 0.02
"""Share of the peak below which a move saves nothing worth the words."""
BETTER = ("does_not_fit", "tight", "fits")


def lowered(asked: Run, filled: Run, outcome: Outcome, around: Around) -> tuple[list[Step], Plan | None]:
    """Steps ranked cheapest first, and the cheapest chain that fits; of a run that came to ``outcome``.

    ``asked`` is the run before ``filled`` got its defaults.
    """
    by_cost = ranks(order_of(filled))
    search = Search(filled, outcome, around, moves_of(filled, by_cost))
    pinner = Pinner(asked, around.refill)
    useful = [made for made in singles(search, search.moves) if _saves(made)]
    ranked = sorted(useful, key=lambda made: (by_cost[made.move], made.outcome.allocated))
    return [step(made, pinner.change(made.before, made.run)) for made in ranked], _plan(asked, chain(search), around)


def planned(asked: Run, filled: Run, outcome: Outcome, around: Around) -> Plan | None:
    """The cheapest chain that fits on the very card."""
    moves = [move for move in moves_of(filled, ranks(order_of(filled))) if move.name not in HARDWARE]
    return _plan(asked, chain(Search(filled, outcome, around, moves)), around)


def order_of(run: Run) -> str:
    """The order of moves: ``details.downgrade_order``, or what suits the stage: pretraining keeps all weights."""
    asked = (run.details or {}).get("downgrade_order")
    if isinstance(asked, str) and asked in table()["orders"]:
        return asked
    return "lossless" if run.task == "train" and run.stage == "pretrain" else "document"


def _saves(made: Made) -> bool:
    """Whether a move is worth telling; other hardware is where it holds the run."""
    if made.move in HARDWARE and not made.outcome.fits:
        return False
    saved = made.was.allocated - made.outcome.allocated
    return saved >= LEAST_SAVED * made.was.allocated or (saved >= 0 and _better(made))


def _better(made: Made) -> bool:
    before, after = made.was.verdict, made.outcome.verdict
    return before is not None and after is not None and BETTER.index(after) > BETTER.index(before)


def _plan(asked: Run, made: list[Made], around: Around) -> Plan | None:
    if not made:
        return None
    steps: list[Step] = []
    whole: dict[str, Any] = {}
    for one in made:
        change = Pinner(asked, around.refill).change(one.before, one.run)
        asked, whole = applied(asked, change), merged(whole, change)
        steps.append(step(one, change))
    last = made[-1]
    host = last.outcome.host if last.outcome.host > made[0].was.host else 0
    return Plan(
        steps=[one.id for one in steps], chain=steps, change=whole, run=last.run,
        allocated_peak=last.outcome.allocated, device_peak=last.outcome.range, verdict=last.outcome.verdict or "fits",
        host_ram=host, commands=commands(last.run, whole),
    )  # fmt: skip
