"""Which module describes which engine; it is imported when a run of that engine is estimated."""

from importlib import import_module
from typing import TYPE_CHECKING

from estimator.errors import EstimatorError
from estimator.schema import Run

if TYPE_CHECKING:
    from estimator.serving.memory import Memory
    from estimator.serving.plan import Plan

MODULES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tgi": "tgi",
    "llama.cpp": "llama_cpp",
    "ollama": "llama_cpp",
    "exllama": "exllama",
    "autoawq": "autoawq",
}
SERVERS = ("vllm", "sglang", "tgi")
"""Engines that take a share of the card."""
FILES = ("llama.cpp", "ollama")
"""Engines that read GGUF files and take what they need rather than a share of the card."""


def memory_of(plan: "Plan") -> "Memory":
    """What the plan's engine takes."""
    found: Memory = import_module(f"estimator.serving.{MODULES[plan.engine]}").memory(plan)
    return found


def is_served(run: Run) -> bool:
    """Whether a serving engine lays the run's memory out by rules of its own."""
    return run.task != "train" and run.engine not in (None, "hf")


def check_engine(engine: str) -> None:
    """Raise for an engine that is not described."""
    if engine not in MODULES:
        known = ", ".join(("hf", *MODULES))
        raise EstimatorError(
            f"engine {engine[:30]} is not described; known are {known}",
            f"暂不支持引擎 {engine[:30]}；可用：{known}",
            "engine",
        )
