"""Encoder-decoders: traced steps, what the lengths mean, and what is refused."""

from typing import Any

import pytest

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Lengths, Run
from tests.estimator.cases import cases, outcome

ROWS = "traced_two_stacks.jsonl"
T5 = "google/flan-t5-base"


def peak(answer: Estimate) -> int:
    assert answer.per_gpu is not None
    return answer.per_gpu.allocated_peak


def test_traced_steps_are_met() -> None:
    errors = {case["id"]: abs(outcome(case).error) for case in cases(ROWS)}
    assert len(errors) >= 45
    assert sum(error <= 1e-5 for error in errors.values()) >= 0.9 * len(errors)
    assert max(errors.values()) <= 0.002, max(errors, key=errors.__getitem__)


def test_the_rows_cover_families_and_modes() -> None:
    runs = [case["run"] for case in cases(ROWS)]
    assert {"t5", "mt5", "umt5", "bart", "mbart", "m2m_100"} <= {run["model"]["model_type"] for run in runs}
    assert {"full", "lora", "qlora", "freeze"} <= {run.get("method") for run in runs}
    assert {"sdpa", "eager"} <= {run.get("attention", "sdpa") for run in runs}
    assert {"train", "infer"} == {run["task"] for run in runs}
    assert any((run.get("details") or {}).get("target_len") for run in runs)


def test_one_length_is_said_to_be_the_sources() -> None:
    answer = estimate(Run(model=T5, method="full", seq_len=512))
    said = [note for note in answer.notes if note.field == "seq_len"]
    assert said[0].value == 512
    assert "target_len" in said[0].why


def test_a_shorter_target_needs_less() -> None:
    def needed(target: int) -> int:
        return peak(estimate(Run(model=T5, method="full", micro_batch=8, seq_len=512, details={"target_len": target})))

    assert needed(64) < needed(256) < needed(512)


def test_the_longest_source_keeps_a_stated_target() -> None:
    run = Run(model=T5, method="full", seq_len=512, gpu="RTX 4090")
    both = estimate(run)
    stated = estimate(run.model_copy(update={"details": {"target_len": 64}}))
    assert both.max is not None and stated.max is not None
    assert 512 < both.max.seq_len < stated.max.seq_len


@pytest.mark.parametrize("model", [T5, "facebook/bart-base"])
def test_padded_rows_have_masks_of_their_own(model: str) -> None:
    even = Run(model=model, method="full", seq_len=512, micro_batch=4)
    padded = even.model_copy(update={"seq_len": Lengths(max=512, mean=200)})
    assert peak(estimate(padded)) > peak(estimate(even))


@pytest.mark.parametrize("model", [T5, "facebook/bart-base"])
@pytest.mark.parametrize(
    "fields", [{"framework": "unsloth"}, {"framework": "llama-factory"}, {"stack": {"transformers": "4.57.6"}},
               {"details": {"use_reentrant": True}}],
)  # fmt: skip
def test_reentrant_checkpoints_are_counted_like_the_others_and_said_to_be(model: str, fields: dict[str, Any]) -> None:
    run = Run.model_validate(
        {"model": model, "method": "lora", "seq_len": 256, "gradient_checkpointing": "full"} | fields
    )
    answer = estimate(run)
    assert any("reentrant" in note.why for note in answer.notes)
    plain = estimate(run.model_copy(update={"details": {"use_reentrant": False}}))
    assert not any("reentrant" in note.why for note in plain.notes)
    assert peak(answer) == peak(plain)
    assert answer.per_gpu is not None and plain.per_gpu is not None
    wide, narrow = answer.per_gpu.interval, plain.per_gpu.interval
    assert wide.high > narrow.high


def test_generation_keeps_the_sources_keys_and_grows_its_own() -> None:
    short, long = (estimate(Run(model=T5, task="infer", context_len=512, new_tokens=n)).serving for n in (2, 102))
    assert short is not None and long is not None
    per_token = 12 * 2 * 768 * 2
    assert long.kv_bytes - short.kv_bytes == 100 * per_token
    assert short.kv_bytes == (512 + 2) * per_token


def test_fp16_and_nf4_leave_the_last_linear_as_it_is() -> None:
    def weights(**fields: object) -> int:
        run = Run.model_validate({"model": T5, "task": "infer", "context_len": 64, "new_tokens": 2, **fields})
        found = estimate(run).serving
        assert found is not None
        return found.weights_bytes

    kept = 24 * 2048 * 768
    assert weights(precision="fp16") - weights(precision="bf16") == 2 * kept
    assert weights(precision="bf16", weight_format="nf4") > 2 * kept


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"stage": "dpo"}, "stage dpo"),
        ({"parallel": {"engine": "fsdp2"}, "gpu_count": 4}, "ddp"),
        ({"attention": "flash2"}, "sdpa or eager"),
        ({"packing": True}, "not packed"),
    ],
)
def test_what_is_not_described_is_refused(fields: dict[str, object], what: str) -> None:
    with pytest.raises(EstimatorError, match=what):
        estimate(Run.model_validate({"model": T5, "method": "full", **fields}))
