"""Engines that fill a share of the card: verdict, steps and what is solved for follow from one range."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from estimator.serving.solve import largest
from tests.estimator.downgrades.promises import keeps_its_promises

ORDER = ("does_not_fit", "tight", "fits")
SIZES = ("6GB", "8GB", "12GB", "16GB", "24GB", "32GB", "48GB", "80GB", "141GB")
GIB = 1 << 30


@st.composite
def served(draw: st.DrawFn) -> dict[str, Any]:
    serving = {
        "gpu_memory_utilization": draw(st.sampled_from((None, 0.5, 0.8, 0.9, 0.95))),
        "cuda_graphs": draw(st.sampled_from((None, False))),
    }
    return {
        "model": draw(st.sampled_from(("llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-4b", "qwen3.6-35b-a3b", "phi-4"))),
        "task": "serve",
        "engine": draw(st.sampled_from(("vllm", "sglang", "tgi"))),
        "context_len": draw(st.integers(100, 60_000)),
        "concurrency": draw(st.integers(1, 40)),
        "weight_format": draw(st.sampled_from((None, "fp8", "awq-4bit-g128"))),
        "reserved_by_others_gib": draw(st.sampled_from((None, 1, 4))),
        "serving": {name: value for name, value in serving.items() if value is not None},
    }


def answered(fields: dict[str, Any], steps: bool = False) -> Estimate:
    return estimate(Run.model_validate(fields), steps=steps)


@settings(max_examples=50, deadline=None)
@given(served())
def test_the_verdict_is_the_range_against_the_card(fields: dict[str, Any]) -> None:
    verdicts = []
    for size in SIZES:
        found = answered(fields | {"gpu": size})
        assert found.per_gpu is not None
        shown, usable = found.per_gpu.device_peak, found.fit.usable or 0
        verdict = "fits" if shown.high <= usable else "tight" if shown.expected <= usable else "does_not_fit"
        assert found.fit.verdict == verdict
        assert shown.low <= shown.expected <= shown.high
        verdicts.append(ORDER.index(verdict))
    assert verdicts == sorted(verdicts)


@settings(max_examples=25, deadline=None)
@given(served(), st.sampled_from(SIZES))
def test_what_is_proposed_fits(fields: dict[str, Any], size: str) -> None:
    keeps_its_promises(Run.model_validate(fields | {"gpu": size}))


@settings(max_examples=25, deadline=None)
@given(served(), st.sampled_from(SIZES))
def test_what_is_possible_fits_and_no_more(fields: dict[str, Any], size: str) -> None:
    asked = fields | {"gpu": size}
    found = answered(asked)
    assert found.max is not None
    users, length = found.max.micro_batch, found.max.seq_len
    for change, most in ((("concurrency"), users), ("context_len", length)):
        if most:
            assert answered(asked | {change: most}).fit.verdict == "fits"
        assert answered(asked | {change: most + 1}).fit.verdict != "fits"
    if found.serving is not None and (share := found.serving.utilization_needed) is not None:
        told = {**fields["serving"], "gpu_memory_utilization": share}
        assert answered(asked | {"serving": told}).fit.verdict == "fits"


@given(st.integers(0, 70_000), st.integers(0, 90_000), st.sampled_from((10, 1000, 1 << 16)))
def test_the_largest_is_found_wherever_it_is_looked_for_first(last: int, near: int, most: int) -> None:
    assert largest(lambda number: number <= last, most, near) == min(last, most)


def test_a_share_that_is_too_small_does_not_fit_an_empty_card() -> None:
    run = {"model": "llama-3.1-8b", "task": "serve", "engine": "vllm", "gpu": "RTX 4090", "context_len": 8192}
    low = answered(run | {"serving": {"gpu_memory_utilization": 0.5}}, steps=True)
    assert low.fit.verdict == "does_not_fit"
    assert low.downgrades[0].id == "pool-share"
    assert low.downgrades[0].verdict == "fits"
    assert low.downgrades[0].commands == [
        f"--gpu-memory-utilization {low.downgrades[0].change['serving']['gpu_memory_utilization']:g}"
    ]


def test_what_lies_beyond_the_share_counts() -> None:
    run = {"model": "qwen2.5-0.5b", "task": "serve", "engine": "vllm", "gpu": "RTX 4090", "context_len": 2048}
    most = answered(run | {"serving": {"gpu_memory_utilization": 0.99}})
    assert most.fit.verdict == "does_not_fit"


def test_graphs_that_the_profile_counts_are_inside_the_share() -> None:
    run = {"model": "qwen2.5-0.5b", "task": "serve", "engine": "vllm", "gpu": "RTX 4090", "context_len": 2048}
    highs = []
    for version in ("0.10.2", "0.21.0"):
        found = answered(run | {"stack": {"vllm": version}, "serving": {"gpu_memory_utilization": 0.9}})
        assert found.per_gpu is not None
        highs.append(found.per_gpu.device_peak.high)
    assert 0.5 * GIB < highs[0] - highs[1] < 1.5 * GIB
