"""The chain that is found is the cheapest of all."""

from itertools import combinations
from typing import Any

import pytest

from estimator.catalogue import find_gpu, find_model
from estimator.downgrades.around import Around
from estimator.downgrades.facts import ranks
from estimator.downgrades.moves import Move, moves_of
from estimator.downgrades.search import Search, chain
from estimator.estimate import estimate, outcome_of, refilled
from estimator.schema import Run

FEW = ("fused-loss", "micro-batch", "adamw-8bit", "bf16", "lora", "qlora", "checkpointing", "length")
RUNS: tuple[dict[str, Any], ...] = (
    {"model": "qwen2.5-0.5b", "precision": "amp-bf16", "gpu": "8GB", "micro_batch": 4, "seq_len": 2048},
    {"model": "llama-3.2-1b", "gpu": "8GB", "micro_batch": 2, "seq_len": 1024},
    {"model": "llama-3.1-8b", "gpu": "24GB", "micro_batch": 4, "seq_len": 4096},
    {"model": "llama-3.1-8b", "gpu": "10GB", "micro_batch": 2, "seq_len": 512},
)


def search_of(fields: dict[str, Any]) -> Search:
    asked = Run.model_validate({"method": "full", "framework": "transformers", **fields})
    found, model = estimate(asked).run, find_model(asked.model)
    assert found is not None
    outcome = outcome_of(found, model)
    assert outcome is not None
    around = Around(
        model.architecture,
        find_gpu(str(asked.gpu)),
        lambda run: refilled(run, model),
        lambda run: outcome_of(run, model),
    )
    moves = [move for move in moves_of(found, ranks("document")) if move.name in FEW]
    return Search(found, outcome, around, moves)


def fits_after(search: Search, moves: tuple[Move, ...]) -> bool:
    run = search.run
    for move in moves:
        grades = search.grades(move, run)
        run = grades[-1] if grades else run
    return search.fits(run)


@pytest.mark.parametrize("fields", RUNS)
def test_no_other_set_of_moves_is_cheaper(fields: dict[str, Any]) -> None:
    search = search_of(fields)
    sets = (one for size in range(len(search.moves) + 1) for one in combinations(search.moves, size))
    costs = [sum(1 << search.rank[move.name] for move in one) for one in sets if fits_after(search, one)]
    found = chain(search)
    assert sum(1 << search.rank[made.move] for made in found) == min(costs)
    assert found[-1].outcome.fits


def test_a_grade_is_no_stronger_than_needed() -> None:
    search = search_of(RUNS[2])
    made = chain(search)
    batch = next(one for one in made if one.move == "micro-batch")
    twice = made[-1].run.model_copy(update={"micro_batch": 2 * (batch.run.micro_batch or 1)})
    assert not search.fits(twice) or batch.run.micro_batch == 2
