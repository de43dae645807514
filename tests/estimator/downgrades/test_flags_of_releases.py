"""Every flag that a step prints is one that its tool has, spelt as its release spells it (tests/data/flags.json)."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from estimator.downgrades import flags
from estimator.downgrades.figures import figures
from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.downgrades.said import PROGRAMS, said

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "flags.json").read_text("utf-8"))
TOOLS = {name: facts for name, facts in FACTS.items() if name != "others"}
STAGES = ("pretrain", "sft", "reward", "dpo", "orpo", "kto", "simpo", "grpo")
ENGINES = ("vllm", "sglang", "llama.cpp")
FIGURES = {
    "rows": 8, "gpu_layers": 20, "ubatch": 256, "batched_tokens": 2048, "max_num_seqs": 8, "kv": "q8_0",
    "weight_format": "Q4_K_M", "completion_len": 256, "zero": 3, "tensor": 2, "share": "0.3", "pool_share": "0.9",
    "total_len": 4096, "context_len": 2048, "concurrency": 4, "cache_tokens": 8192, "axolotl_offload": "zero2",
}  # fmt: skip


def run_of(tool: str, stage: str | None) -> Run:
    """A run that the tool is told about."""
    if tool in ENGINES:
        return Run(model="qwen2.5-7b", task="serve", engine=tool, gpu_count=2, gpu="24GB")
    return Run.model_validate(
        {"model": "qwen2.5-7b", "task": "train", "framework": tool, "stage": stage, "method": "full", "gpu_count": 2}
    )


def lines_of(tool: str, stage: str | None) -> list[str]:
    """Everything that the tool's table says for a stage, figures filled in."""
    run = run_of(tool, stage)
    table = flags.table_of(run) or {}
    found: list[str] = []
    for key in table:
        name, _, value = key.split(",")[0].partition("=")
        for kind in _kinds(key, run):
            found += flags._lines(table, name, value or None, kind) or ()
    return [line.format_map(figures(run) | FIGURES) for line in dict.fromkeys(found)]


def _kinds(key: str, run: Run) -> list[Run]:
    """The run as it is, and as one on adapters, on a quantised base or under FSDP where the key is for those."""
    change: dict[str, Any] = {}
    if ",adapted" in key or ",quantised" in key:
        change |= {"method": "qlora" if ",quantised" in key else "lora"}
        change |= {"weight_format": "nf4"} if ",quantised" in key else {}
    if ",fsdp" in key:
        change |= {"parallel": {"engine": "fsdp2", "data": 2, "zero": 3}}
    return [Run.model_validate(run.model_dump(exclude_none=True) | change)]


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_flag_is_one_of_the_release(tool: str) -> None:
    seen = {line for stage in (STAGES if tool not in ENGINES else (None,)) for line in lines_of(tool, stage)}
    assert seen
    for line in seen:
        named = said(line)
        assert named or line.startswith(PROGRAMS), line
        for owner, name, value in named:
            assert is_taken(tool, owner, name, value), f"{tool}: {name} {value} of {line!r}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_told_what_its_config_has(stage: str) -> None:
    """trl's trainers have a configuration each: GRPOConfig has no max_length, CPOConfig no activation_offloading."""
    only: dict[str, list[str]] = TOOLS["trl"]["of_stages"]
    config = "sft" if stage == "pretrain" else stage
    for line in typed(stage):
        for owner, name, value in said(line):
            assert is_taken("trl", owner, name, value), line
            assert owner or config in only.get(name.lstrip("-"), [config]), line


def typed(stage: str) -> set[str]:
    """All that is typed for the steps of runs that need much: models whose loss Liger has and has not."""
    found: set[str] = set()
    for (model, gpu), more in product((("qwen2.5-0.5b", "8GB"), ("falcon-7b", "24GB")), MORE):
        asked = {"model": model, "gpu": gpu, "stage": stage, "framework": "trl", "micro_batch": 4}
        for step in estimate(Run.model_validate(asked | more)).downgrades:
            found |= set(step.commands)
    assert found
    return found


ONLINE = {"num_generations": 8, "max_completion_len": 1024, "engine": "vllm", "colocated_share": 0.4}
MORE: tuple[dict[str, Any], ...] = (
    {"method": "full"},
    {"method": "lora", "loss": "standard", "attention": "eager"},
    {"method": "full", "gpu_count": 2},
    {"method": "lora", "seq_len": 2048, "rl": ONLINE},
)
"""What else may be said of a run."""


def is_taken(tool: str, owner: str, name: str, value: str | None) -> bool:
    """Whether the tool, the program or the file that is named has such a name and takes such a value."""
    if owner:
        return takes(FACTS["others"][owner][name.lstrip("-").replace("-", "_")], value)
    known = TOOLS.get(TOOLS[tool].get("like"), {"flags": {}})["flags"] | TOOLS[tool]["flags"]
    plain = name if tool in BY_THE_LETTER else name.lstrip("-").replace("-", "_")
    kind = known.get(plain) or FACTS["others"]["everywhere"].get(plain)
    return kind is not None and takes(kind, value)


BY_THE_LETTER = (*ENGINES, "litgpt", "openrlhf")
"""Tools whose flags stand in the list with their dashes."""


def takes(kind: str | list[str], value: str | None) -> bool:
    """Whether a value is of a kind: one of a list, a number, a switch, or whatever is written."""
    if isinstance(kind, list):
        return value is not None and value in kind
    if kind in ("flag", "bool") and value is None:
        return True
    if value is None:
        return kind == "str or none"
    return (
        {"int": _is_number(value, int), "float": _is_number(value, float)}.get(kind, True)
        and (kind != "bool" or value.lower() in ("true", "false"))
        and kind != "flag"
    )


def _is_number(value: str, kind: type[int] | type[float]) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True


def test_the_facts_name_their_source() -> None:
    assert set(PROGRAMS) <= set(FACTS["others"])
    for tool, facts in TOOLS.items():
        assert facts["version"], tool
        assert facts["source"], tool
        assert facts["read"] == "2026-11-30", tool
