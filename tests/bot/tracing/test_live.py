"""Twenty fixed runs traced here and now, where torch and the others are installed: the tracer, the rows, the estimates.

In a process of its own, since the pretended card must be there before torch is.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.cases import cases, outcome

ROOT = Path(__file__).parents[3]
NEEDED = ("torch", "transformers", "peft", "bitsandbytes", "trl")
MISSING = [name for name in NEEDED if find_spec(name) is None]
FIXED = 20

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (the extra trace)")


def fixed() -> dict[str, dict[str, Any]]:
    """The smallest row of each method and family, the methods in turn, until there are twenty."""
    by_method: dict[str, dict[str, dict[str, Any]]] = {}
    for case in sorted(cases("traced_random.jsonl"), key=lambda case: case["measured"]["bytes"]):
        method = case["run"].get("method") or case["run"]["task"]
        by_method.setdefault(method, {}).setdefault(case["arch"], case)
    rows = [list(found.values()) for found in by_method.values()]
    taken = [row[place] for place in range(FIXED) for row in rows if place < len(row)][:FIXED]
    return {case["id"]: case for case in taken}


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_twenty_fixed_runs_trace_as_stored_and_as_estimated() -> None:
    rows = fixed()
    assert len(rows) == FIXED
    found = [
        json.loads(line) for line in python(f"from docs.agreement import again; again({list(rows)!r})").splitlines()
    ]
    assert [one["id"] for one in found] == list(rows)
    for one in found:
        stored = rows[one["id"]]
        assert one["measured"]["bytes"] == pytest.approx(stored["measured"]["bytes"], rel=1e-4), one["id"]
        assert one["phase"] == stored["phase"] or one["measured"] == stored["measured"], one["id"]
        assert abs(outcome({**stored, **one}).error) <= 0.03, one["id"]


def test_a_packed_mixture_keeps_its_router() -> None:
    """A router that is a class made of a linear stays plain, as in transformers; the estimate is the trace's."""
    config = next(case["run"]["model"] for case in cases("traced_more.jsonl") if case["arch"] == "llama4-tiny")
    run = {"model": config, "task": "train", "method": "qlora", "adapter": {"rank": 8, "targets": "qv"},
           "framework": "transformers", "micro_batch": 1, "seq_len": 64}  # fmt: skip
    code = f"""
from bot.tracing.trace import trace
from estimator.estimate import estimate
from estimator.schema import Run
run = Run.model_validate({run!r})
print(trace(run).per_gpu.allocated_peak, estimate(run).per_gpu.allocated_peak)
"""
    traced, ours = map(int, python(code).split())
    assert ours == pytest.approx(traced, rel=1e-3)


def test_the_command_traces_a_config() -> None:
    run = {"method": "lora", "seq-len": "64", "gradient_checkpointing": "full", "loss": "standard"}
    flags = [text for name, value in run.items() for text in (f"--{name}", value)]
    arguments = ["trace", "qwen2.5-0.5b", "--json", *flags]
    answer = json.loads(python(f"from bot.cli import main; main({arguments!r})"))
    ours = estimate(Run.model_validate(answer["run"])).per_gpu
    assert ours is not None
    own = {one.phase: one.allocated_peak for one in ours.phases}
    for one in answer["per_gpu"]["phases"]:
        assert one["allocated_peak"] == pytest.approx(own[one["phase"]], rel=0.001), one["phase"]
    assert sum(block["bytes"] for block in answer["per_gpu"]["at_peak"]) == answer["per_gpu"]["allocated_peak"]


def test_the_real_step_runs_without_fakes() -> None:
    """What ``--gpu-check`` runs on a card, here on the CPU with real tensors; without a card it says so."""
    code = """
from bot.tracing import gpu_check
from bot.tracing.trace import read
from estimator.errors import EstimatorError
from estimator.schema import Run
config = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 100}
run = Run.model_validate({"model": config, "task": "train", "method": "lora", "framework": "transformers",
                          "micro_batch": 2, "seq_len": 16, "gradient_checkpointing": "full"})
plan = read(run)[2]
model = gpu_check.prepared(plan, "cpu")
before = [one.detach().clone() for one in model.parameters() if one.requires_grad]
gpu_check.stepped(plan, model, "cpu")
after = [one for one in model.parameters() if one.requires_grad]
print(sum(bool((old != new).any()) for old, new in zip(before, after)) > 0)
import torch
if not torch.cuda.is_available():
    try:
        gpu_check.measure(run)
    except EstimatorError as error:
        print("sees none" in error.message)
"""
    assert set(python(code).split()) == {"True"}
