"""Which module describes which engine."""

from collections.abc import Callable

from estimator.errors import EstimatorError
from estimator.schema import Run
from estimator.serving import autoawq, exllama, llama_cpp, sglang, tgi, vllm
from estimator.serving.memory import Memory
from estimator.serving.plan import Plan

ENGINES: dict[str, Callable[[Plan], Memory]] = {
    "vllm": vllm.memory,
    "sglang": sglang.memory,
    "tgi": tgi.memory,
    "llama.cpp": llama_cpp.memory,
    "ollama": llama_cpp.memory,
    "exllama": exllama.memory,
    "autoawq": autoawq.memory,
}
FILES = ("llama.cpp", "ollama")
"""Engines that read GGUF files and take what they need rather than a share of the card."""


def memory_of(plan: Plan) -> Memory:
    """What the plan's engine takes."""
    return ENGINES[plan.engine](plan)


def is_served(run: Run) -> bool:
    """Whether a serving engine lays the run's memory out by rules of its own."""
    return run.task != "train" and run.engine not in (None, "hf")


def check_engine(engine: str) -> None:
    """Raise for an engine that is not described."""
    if engine not in ENGINES:
        known = ", ".join(("hf", *ENGINES))
        raise EstimatorError(
            f"engine {engine[:30]} is not described; known are {known}",
            f"暂不支持引擎 {engine[:30]}；可用：{known}",
            "engine",
        )
