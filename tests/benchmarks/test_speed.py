"""How fast: ``pytest tests/benchmarks --benchmark-only`` prints the figures and holds them to their limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bot import service
from bot.intake.understand import understand
from estimator.schema import Run

QUESTION = "/vram model:0.5b method:lora gpu:8GB"
LARGE = Run(model="meta-llama/Llama-3.1-8B", method="lora")
LINES = 1000


def test_a_warm_estimate_of_32_layers(benchmark: BenchmarkFixture) -> None:
    benchmark(service.estimate, LARGE)
    assert benchmark.stats.stats.median <= 0.0005


def test_understanding_a_message(benchmark: BenchmarkFixture) -> None:
    benchmark(understand, "4张A800-40G 能 Qwen2VL 72B Lora 吗，zero3-offload 有机会吗")
    assert benchmark.stats.stats.median <= 0.05


def test_lines_a_second(benchmark: BenchmarkFixture) -> None:
    models = ("qwen2.5-0.5b", "llama-3.1-8b", "mistral-7b", "qwen3-14b")
    text = "".join(
        json.dumps({"id": n, "model": models[n % 4], "method": ("lora", "full", "qlora")[n % 3], "seq_len": 512 + n})
        + "\n"
        for n in range(LINES)
    )
    command = [sys.executable, "-m", "bot", "estimate", "--jsonl"]
    done = benchmark.pedantic(
        lambda: subprocess.run(command, input=text, capture_output=True, text=True, check=True), rounds=3, iterations=1
    )
    assert done.stdout.count("\n") == LINES
    assert LINES / benchmark.stats.stats.median >= 500


def test_a_whole_process(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(asked, rounds=7, iterations=1, warmup_rounds=1)
    assert benchmark.stats.stats.median <= 0.6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs a system that tells a child's peak memory")
def test_memory_of_a_whole_process(benchmark: BenchmarkFixture) -> None:
    peak = benchmark.pedantic(asked, rounds=1, iterations=1)
    benchmark.extra_info["peak_mb"] = round(peak / 1e6, 1)
    assert peak <= 80e6


def asked() -> int:
    """Ask in a process of its own; its peak resident memory in bytes."""
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "bot", "ask", QUESTION],
        dict(os.environ),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_maxrss * 1024
