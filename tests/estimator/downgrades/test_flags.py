"""What is typed for a change, per framework."""

import tomllib
from importlib.resources import files

import pytest

from estimator.downgrades import applied, commands
from estimator.downgrades.flags import offered
from estimator.downgrades.moves import INFERENCE, TRAINING
from estimator.estimate import estimate
from estimator.frameworks import KNOWN
from estimator.schema import Run

ASKED = Run(model="llama-3.1-8b", method="full", gpu="24GB", micro_batch=4)
FRAMEWORKS = ("transformers", "trl", "llama-factory", "axolotl", "unsloth", "torchtune", "ms-swift")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_batch_is_typed_in_the_frameworks_own_words(framework: str) -> None:
    change = {"micro_batch": 1, "grad_accum": 4}
    lines = commands(applied(ASKED, change), change, framework)
    assert len(lines) == 2
    assert any("1" in line for line in lines)
    assert any("4" in line for line in lines)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_lora_is_typed_once(framework: str) -> None:
    found = estimate(ASKED.model_copy(update={"framework": framework, "method": "full"}))
    step = next(one for one in found.downgrades if one.id == "lora")
    text = "\n".join(step.commands)
    assert "16" in text
    assert len(step.commands) == len(set(step.commands))


def test_prompts_are_typed_as_completions_where_trl_counts_those() -> None:
    run = Run.model_validate({"model": "7b", "stage": "grpo", "task": "train", "rl": {"num_generations": 8}})
    change = {"micro_batch": 2}
    assert commands(applied(run, change), change, "trl") == ["--per_device_train_batch_size 16"]


def test_a_framework_of_which_nothing_is_known_has_no_flags() -> None:
    change = {"micro_batch": 1}
    assert commands(applied(ASKED, change), change, "verl") == []
    assert offered(applied(ASKED, {"framework": "verl", "task": "train"}), ("micro_batch",))


def test_the_tables_name_fields_and_frameworks_that_exist() -> None:
    tables = tomllib.loads(files("estimator").joinpath("data/flags.toml").read_text("utf-8"))
    fields = set(Run.model_fields)
    assert set(tables) <= {*KNOWN, "hf"}
    keys = {key for table in tables.values() for key in table if key != "like"}
    assert {key.split("=")[0].split(",")[0].split(".")[0] for key in keys} <= fields


@pytest.mark.parametrize("move", [move for move in (*TRAINING, *INFERENCE) if move.needs], ids=lambda move: move.name)
def test_every_move_can_be_typed_somewhere(move: object) -> None:
    tables = tomllib.loads(files("estimator").joinpath("data/flags.toml").read_text("utf-8"))
    for field in move.needs:  # type: ignore[attr-defined]
        assert any(key.split("=")[0] == field for table in tables.values() for key in table), field
