"""How long look-ups take; run with ``pytest --benchmark-only tests/benchmarks``."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from estimator.catalogue.gpus import find_gpu
from estimator.catalogue.models import find_model, model_names
from estimator.catalogue.rows import architecture
from estimator.inventory import inventory

Benchmark = Callable[..., Any]

FIRST = """
import time
from estimator.catalogue.models import find_model
start = time.perf_counter()
find_model("qwen2.5-0.5b")
print(time.perf_counter() - start)
"""


def test_first_look_up_in_a_fresh_process(benchmark: Benchmark) -> None:
    """The whole process, interpreter and imports included; the look-up alone is printed."""

    def fresh() -> str:
        return subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True).stdout

    print(f"look-up alone: {float(benchmark(fresh)) * 1e3:.1f} ms")


@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "0.5b", "TheBloke/Mistral-7B-v0.1-GPTQ", "lama 3 8b"])
def test_later_look_ups(benchmark: Benchmark, name: str) -> None:
    find_model(name)
    assert benchmark(find_model, name).id


def test_a_card(benchmark: Benchmark) -> None:
    assert benchmark(find_gpu, "2x4090").count == 2


def test_completion(benchmark: Benchmark) -> None:
    assert benchmark(model_names, "qwen", 25)


def test_an_inventory(benchmark: Benchmark) -> None:
    arch = architecture("deepseek-ai/DeepSeek-V3")
    assert benchmark(inventory.__wrapped__, arch).numel > 6e11
