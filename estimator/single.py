"""One move by its name, made by itself: what a diagnosis proposes for a run that failed."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from estimator.catalogue import find_gpu, find_model
from estimator.downgrades import commands
from estimator.downgrades.change import difference
from estimator.downgrades.facts import ranks
from estimator.downgrades.flags import offered
from estimator.downgrades.moves import moves_of
from estimator.estimate import around_of, card_of
from estimator.schema import Run

Choice = Callable[[Sequence[Run]], Run]
ANY_CARD = "24GB"
"""What is taken for the card where none is named: its abilities, not its size."""


class Single(NamedTuple):
    """The run after a move, the partial run that leads there, and what is typed for it."""

    run: Run
    change: dict[str, Any]
    commands: list[str]


def single(run: Run, names: Collection[str], choose: Choice) -> Single | None:
    """The first of the named moves that a filled run's framework and card take; ``choose`` picks among its grades.

    None where none applies. Raises EstimatorError for a model or a card that is not known.
    """
    model, gpu = find_model(run.model), card_of(run) or find_gpu(ANY_CARD)
    around = around_of(model, gpu)
    for move in moves_of(run, ranks("document")):
        grades = move.rule(run, around) if move.name in names else ()
        if grades and offered(grades[-1], move.needs):
            after = choose(grades)
            change = difference(run, after)
            return Single(after, change, commands(after, change))
    return None
