"""The estimator's part in a diagnosis: which run it was, what fixes bring, and the gap in bytes."""

from typing import Any

import pytest

from bot import service
from bot.diagnosing.moves import MOVES, change_of
from bot.diagnosing.runs import run_in
from estimator.schema import Run
from knowledge.diagnosis import Diagnosis
from knowledge.logs.reading import read_log

FULL = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} (GPU 0; 23.70 GiB total capacity; {allocated} "
    "already allocated; {free} free; {reserved} reserved in total by PyTorch)"
)


def diagnosed(words: str, **numbers: str) -> Diagnosis:
    return service.diagnose(words + "\n" + FULL.format(**numbers))


@pytest.fixture(scope="module")
def trained() -> Diagnosis:
    words = (
        "qwen2.5-7b lora on a 3090, transformers, per_device_train_batch_size 4, max length 1024, loss.backward fails"
    )
    return diagnosed(words, tried="0.50 GiB", allocated="22.50 GiB", free="0.10 GiB", reserved="22.60 GiB")


def test_fixes_have_their_new_peak(trained: Diagnosis) -> None:
    fixes = {fix.id: fix for cause in trained.causes for fix in cause.fixes}
    smaller = fixes["smaller_batch"]
    assert smaller.change == {"micro_batch": 1, "grad_accum": 4}
    assert smaller.allocated_peak
    assert smaller.saves
    assert smaller.allocated_peak + smaller.saves == trained.gap.estimated  # type: ignore[union-attr]


def test_the_parts_of_the_gap_add_up(trained: Diagnosis) -> None:
    assert trained.gap
    assert sum(part.bytes for part in trained.gap.explained_by) == trained.gap.observed - trained.gap.estimated


def test_allocator_flags_are_not_offered_when_nothing_is_cached(trained: Diagnosis) -> None:
    assert any("expandable_segments" in one for one in trained.useless)
    assert not any("expandable" in fix.title for fix in trained.causes[0].fixes)


def test_a_smaller_batch_is_no_help_while_loading() -> None:
    words = 'llama-2-70b lora, 8x A100 80GB\n  File "modeling.py", line 1, in from_pretrained\n'
    found = diagnosed(words, tried="0.50 GiB", allocated="23.00 GiB", free="0.10 GiB", reserved="23.00 GiB")
    assert found.phase == "load"
    assert found.causes[0].id == "weights_exceed_gpu"
    assert any("smaller batch" in one for one in found.useless)
    assert found.gap is None


def test_the_reading_that_explains_the_request_is_the_run() -> None:
    log = read_log("ctx 16384 qlora: llama2-7b fine, llama3-8b OOM on T4. Tried to allocate 7.83 GiB")
    assert "3" in str(run_in(log)["resolved_model"])


def test_an_estimate_of_another_run_is_left_out() -> None:
    found = diagnosed("llama-2-70b lora", tried="1.75 GiB", allocated="16.79 GiB", free="0.9 GiB", reserved="20.7 GiB")
    assert found.gap is None


@pytest.mark.parametrize(
    ("name", "run", "change"),
    [
        ("smaller_batch", {"micro_batch": 4, "grad_accum": 2}, {"micro_batch": 1, "grad_accum": 8}),
        ("smaller_batch", {"micro_batch": 1}, None),
        ("half_length", {"seq_len": 4096}, {"seq_len": 2048}),
        ("half_length", {"seq_len": 256}, None),
        ("checkpointing", {"gradient_checkpointing": "none"}, {"gradient_checkpointing": "full"}),
        ("checkpointing", {"gradient_checkpointing": "full"}, None),
        ("adamw_8bit", {"optimizer": "adamw"}, {"optimizer": "adamw-8bit", "optimizer_impl": None}),
        ("zero3", {"gpu_count": 4}, {"parallel": {"engine": "deepspeed", "zero": 3, "data": 4}}),
        ("zero3", {"gpu_count": 1}, None),
        ("two_cards", {"task": "serve"}, {"gpu_count": 2, "parallel": {"tensor": 2}}),
        ("sdpa", {"attention": "eager"}, {"attention": "sdpa"}),
        ("kv_q8", {"task": "infer", "engine": "llama.cpp"}, {"kv_cache": {"dtype": "q8_0"}}),
    ],
)
def test_a_move(name: str, run: dict[str, Any], change: dict[str, Any] | None) -> None:
    assert change_of(name, Run.model_validate({"model": "7b", "task": "train", **run})) == change


def test_a_move_leaves_a_run_of_another_task_alone() -> None:
    served = Run(model="7b", task="serve", micro_batch=4)
    assert change_of("smaller_batch", served) is None
    assert all(change_of(name, Run(model="7b", task="infer")) is None for name in MOVES if name.startswith("offload"))
