"""The estimator's part in a diagnosis: which run it was, what fixes bring, and the gap in bytes."""

from typing import Any

import pytest

from bot import service
from bot.diagnosing.moves import MOVES, made
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


TRAINED = {"model": "llama-3.1-8b", "task": "train", "method": "lora", "framework": "trl"}
SERVED = {"model": "llama-3.1-8b", "task": "serve", "engine": "vllm", "gpu": "H100"}


def filled(**fields: Any) -> Run:
    run = service.estimate(Run.model_validate(fields), steps=False).run
    assert run is not None
    return run


@pytest.mark.parametrize(
    ("name", "fields", "change", "typed"),
    [
        ("smaller_batch", {**TRAINED, "micro_batch": 4, "grad_accum": 2}, {"micro_batch": 1, "grad_accum": 8},
         "--per_device_train_batch_size 1"),
        ("smaller_batch", {**TRAINED, "micro_batch": 1}, None, ""),
        ("half_length", {**TRAINED, "seq_len": 4096}, {"seq_len": 2048}, "--max_length 2048"),
        ("checkpointing", {**TRAINED, "gradient_checkpointing": "none"}, {"gradient_checkpointing": "full"},
         "--gradient_checkpointing true"),
        ("checkpointing", {**TRAINED, "gradient_checkpointing": "full"}, None, ""),
        ("adamw_8bit", TRAINED, {"optimizer": "adamw-8bit"}, "--optim adamw_bnb_8bit"),
        ("adamw_8bit", {**TRAINED, "framework": "megatron", "method": "full"}, None, ""),
        ("zero3", {**TRAINED, "gpu_count": 4}, {"parallel": {"engine": "fsdp2", "data": 4, "zero": 3}},
         "accelerate launch --config_file fsdp2.yaml --num_processes 4"),
        ("zero3", {**TRAINED, "gpu_count": 1}, None, ""),
        ("two_cards", SERVED, {"gpu_count": 2, "parallel": {"tensor": 2}}, "--tensor-parallel-size 2"),
        ("sdpa", {**TRAINED, "attention": "eager"}, {"attention": "sdpa"}, "--attn_implementation sdpa"),
        ("kv_fp8", SERVED, {"kv_cache": {"dtype": "fp8"}}, "--kv-cache-dtype fp8"),
        ("kv_fp8", {**SERVED, "gpu": "A100 80GB"}, None, ""),
        ("kv_q8", {"model": "llama-3.1-8b", "task": "infer", "engine": "llama.cpp"}, {"kv_cache": {"dtype": "q8_0"}},
         "-ctk q8_0"),
        ("shorter_context", {**SERVED, "context_len": 32768}, {"context_len": 16384}, "--max-model-len"),
    ],
)  # fmt: skip
def test_a_move(name: str, fields: dict[str, Any], change: dict[str, Any] | None, typed: str) -> None:
    found = made(name, filled(**fields))
    assert (found.change if found else None) == change
    assert any(line.startswith(typed) for line in found.commands) if found else not typed


def test_a_move_leaves_a_run_of_another_task_alone() -> None:
    served = filled(model="7b", task="infer", micro_batch=4)
    assert made("smaller_batch", served) is None
    assert all(made(name, served) is None for name in MOVES if name.startswith("offload"))


def test_fixes_say_what_to_type(trained: Diagnosis) -> None:
    fixes = {fix.id: fix for cause in trained.causes for fix in cause.fixes}
    assert fixes["smaller_batch"].commands == ["--per_device_train_batch_size 1", "--gradient_accumulation_steps 4"]


@pytest.mark.parametrize("text", ["hello", "你好", "my training is slow", "why is the loss nan"])
def test_a_text_that_says_nothing_of_memory_has_no_cause(text: str) -> None:
    found = service.diagnose(text)
    assert found.causes == []
    assert any(words in found.text for words in ("Paste the last lines", "请贴出报错"))


def test_ranks_in_the_log_are_cards() -> None:
    found = service.diagnose("llama-2-7b lora bf16\n[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n  in forward")
    assert found.run
    assert found.run["gpu_count"] == 4


def test_an_estimate_with_other_weights_than_the_engine_prints_is_left_out() -> None:
    words = "vllm serve llama-2-70b\nINFO model_runner.py:1140] Model loading took {} GiB\nCUDA out of memory"
    assert "By our count" in service.diagnose(words.format("128.5")).text
    assert "By our count" not in service.diagnose(words.format("16.2")).text


def test_the_cache_of_the_longest_request_is_told() -> None:
    text = (
        "ValueError: To serve at least one request with the models's max seq len (262144), (24.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (3.18 GiB)). Based on the available memory, the "
        "estimated maximum model length is 34736."
    )
    fix = service.diagnose(text).causes[0].fixes[0].title
    assert all(one in fix for one in ("34,736", "24.00 GiB", "96 KiB", "3.18 GiB"))


QWEN = "llama-2-7b, full fine-tuning in bf16, RTX 3090, batch size 1, seq len 1024, gradient checkpointing on\n"


def test_a_run_that_stopped_before_its_peak_leaves_nothing_unexplained() -> None:
    found = diagnosed(QWEN + "in forward", tried="0.25 GiB", allocated="13.10 GiB", free="0.1 GiB", reserved="13.2 GiB")
    assert found.gap
    parts = {part.id: part.bytes for part in found.gap.explained_by}
    assert sum(parts.values()) == found.gap.observed - found.gap.estimated
    assert abs(parts.get("unexplained", 0)) < 2**29
    assert parts["before_the_peak"] + parts["no_states_yet"] < -20 * 2**30


def test_other_processes_are_told_apart_from_the_context() -> None:
    text = (
        "llama-2-7b lora bf16 batch size 4 seq len 2048 gradient checkpointing on\n"
        "CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 0.10 GiB "
        "is free. Process 77 has 4.00 GiB memory in use. Including non-PyTorch memory, this process has 19.55 GiB "
        "memory in use. Of the allocated memory 18.90 GiB is allocated by PyTorch, and 150.00 MiB is reserved by "
        "PyTorch but unallocated."
    )
    found = service.diagnose(text)
    assert found.gap
    parts = {part.id: part.bytes for part in found.gap.explained_by}
    assert parts["other_processes"] == pytest.approx(4.0 * 2**30, rel=0.01)
    assert parts["outside_pytorch"] == pytest.approx(0.5 * 2**30, rel=0.02)
    assert sum(parts.values()) == found.gap.observed - found.gap.estimated


def test_what_nothing_explains_is_said() -> None:
    words = "qwen2.5-0.5b lora bf16 batch size 1 seq len 512 gradient checkpointing on"
    found = diagnosed(words, tried="0.25 GiB", allocated="19.40 GiB", free="0.1 GiB", reserved="20.0 GiB")
    assert found.gap
    parts = {part.id: part.bytes for part in found.gap.explained_by}
    assert parts["unexplained"] > 10 * 2**30
    assert "not explained" in found.text


def test_what_to_type_is_told_where_the_tool_is_named(trained: Diagnosis) -> None:
    assert "[--per_device_train_batch_size 1 --gradient_accumulation_steps 4]" in trained.text
    words = "qwen2.5-7b lora on a 3090, batch size 4, max length 1024, loss.backward fails"
    found = diagnosed(words, tried="0.50 GiB", allocated="22.50 GiB", free="0.10 GiB", reserved="22.60 GiB")
    assert "--per_device" not in found.text
    assert any(fix.commands for cause in found.causes for fix in cause.fixes)


def test_a_long_diagnosis_is_told_within_a_message() -> None:
    words = (
        "qwen2.5-32B full SFT bf16, max_seq_length 32768, batch size 1, 8x H200\n[rank7]: in forward\n[rank7]:   in "
        "ForCausalLMLoss cross_entropy\ndpo reference model, adamw, gradient checkpointing off, zero2\n"
    )
    found = diagnosed(words * 3, tried="9.37 GiB", allocated="11.77 GiB", free="0.95 GiB", reserved="21.4 GiB")
    assert len(found.text) <= 1800
    assert found.useless


def test_a_broken_shape_is_read_as_far_as_it_goes() -> None:
    found = service.diagnose("OOM when allocating tensor with shape[5,12,557,5 2] and type half on device:GPU:0")
    assert found.message.get("tensor_shape") == [5, 12, 557, 5, 2]
