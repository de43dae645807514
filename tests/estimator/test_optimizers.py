"""Optimizer states to the byte, and the peak of a step, against traced ones."""

from typing import Any

import pytest

from estimator.architecture import from_config
from estimator.choices import choice_of
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.optimizer_states import Choice
from estimator.optimizers import RULES, OptimizerMemory, memory_of
from estimator.regimes import training_regime
from estimator.schema import Run
from estimator.trainables import Group, Trainable, ordered
from tests.estimator.cases import cases
from tests.estimator.methods import PLAIN

MATRIX = Trainable((1024, 1024), 2, 1, True, False, "mlp.up_proj.weight")
VECTOR = Trainable((1024,), 2, 1, False, False, "input_layernorm.weight")
GROUPS: tuple[Group, ...] = ((4, (MATRIX, VECTOR)),)
NOT_IN_THE_OPTIMIZER = ("adalomo",)
"""AdaLomo's sums lie outside its ``state``: the tracer counts them among the temporaries."""


def traced() -> list[Any]:
    return [
        pytest.param(case, id=case["id"])
        for case in cases("methods.jsonl")
        if case["run"]["optimizer"] not in NOT_IN_THE_OPTIMIZER
    ]


def memory(run: Run) -> OptimizerMemory:
    arch = from_config(run.model) if isinstance(run.model, dict) else None
    assert arch is not None
    groups = ordered(inventory(arch), training_regime(run, arch))
    return memory_of(choice_of(run, arch), groups)


@pytest.mark.parametrize("case", traced())
def test_states_of_a_traced_optimizer(case: dict[str, Any]) -> None:
    found = memory(Run.model_validate(case["run"]))
    assert found.states == case["states"]
    if "paged" in case:
        assert found.paged == case["paged"]


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_optimizer_has_states_and_a_step(name: str) -> None:
    found = memory_of(Choice(name, hidden=1024, heads=16), GROUPS)
    assert found.states >= 0
    assert found.temporaries >= 0
    assert found.why and found.why_zh


def test_nothing_trains() -> None:
    assert memory_of(Choice(), ()) == OptimizerMemory(0, 0, 0, *memory_of(Choice(), GROUPS)[3:5])


def test_foreach_makes_one_copy_more() -> None:
    found = memory_of(Choice(implementation="foreach"), GROUPS)
    assert found.temporaries == 4 * (2 * 1024 * 1024 + 2048)


def test_the_loop_holds_the_last_tensor_while_it_works_on_the_next() -> None:
    alike: tuple[Group, ...] = ((4, (MATRIX, MATRIX)),)
    assert memory_of(Choice(implementation="for-loop"), alike).temporaries == 3 * 2 * 1024 * 1024
    assert memory_of(Choice(implementation="for-loop"), ((1, (MATRIX,)),)).temporaries == 2 * 2 * 1024 * 1024


def test_clipping_needs_a_norm_per_tensor() -> None:
    assert memory_of(Choice("sgd"), GROUPS).temporaries == 8 * 512 + 512 + 512
    assert memory_of(Choice("sgd", clipping=False), GROUPS).temporaries == 0


def test_paged_states_leave_the_card() -> None:
    paged, plain = (memory_of(Choice(name), GROUPS) for name in ("paged-adamw-32bit", "adamw-32bit"))
    assert paged.paged == 4 * 8 * 1024 * 1024
    assert paged.states == plain.states - paged.paged


def test_galore_computes_new_projectors_now_and_then() -> None:
    found = memory_of(Choice("galore"), GROUPS)
    assert found.refresh > found.temporaries


def test_low_rank_targets() -> None:
    narrow = memory_of(Choice("galore", targets="attention"), GROUPS)
    assert narrow.states > memory_of(Choice("galore"), GROUPS).states


def test_an_unknown_optimizer_is_named() -> None:
    with pytest.raises(EstimatorError, match="adamz"):
        memory_of(Choice("adamz"), GROUPS)


def test_the_method_is_the_optimizer() -> None:
    arch = from_config(PLAIN["model"])
    assert (
        choice_of(Run.model_validate(PLAIN | {"method": "galore", "optimizer": "adamw-8bit"}), arch).name
        == "galore-8bit"
    )
    assert choice_of(Run.model_validate(PLAIN | {"method": "lomo"}), arch).name == "lomo"
