"""How fast: ``pytest tests/benchmarks --benchmark-only`` prints the figures and holds them to their limits."""

import json
import os
import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bot import service
from bot.intake.understand import understand
from estimator.schema import Run

QUESTION = "/vram model:0.5b method:lora gpu:8GB"
LARGE = Run(model="meta-llama/Llama-3.1-8B", method="lora")
LINES = 1000
COMMAND = [sys.executable, "-m", "bot", "ask", QUESTION]
LAUNCH = (
    "accelerate launch train.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2"
    " --max_seq_length 2048 --bf16 --use_lora --gradient_checkpointing\n"
)
OUT_OF_MEMORY = """
Traceback (most recent call last):
  File "/home/me/train.py", line 88, in <module>
    trainer.train()
  File "/usr/lib/python3.11/site-packages/transformers/trainer.py", line 2216, in _inner_training_loop
    tr_loss_step = self.training_step(model, inputs)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of \
which 1.02 GiB is free. Including non-PyTorch memory, this process has 22.65 GiB memory in use. Of the allocated \
memory 21.60 GiB is allocated by PyTorch, and 612.44 MiB is reserved by PyTorch but unallocated.
"""
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which modules are compiled once, as pip compiles what it installs and ``-e`` may not."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("bytecode"))}


def test_a_warm_estimate_of_32_layers(benchmark: BenchmarkFixture) -> None:
    benchmark(service.estimate, LARGE)
    assert benchmark.stats.stats.median <= 0.0005


def test_understanding_a_message(benchmark: BenchmarkFixture) -> None:
    benchmark(understand, "4张A800-40G 能 Qwen2VL 72B Lora 吗，zero3-offload 有机会吗")
    assert benchmark.stats.stats.median <= 0.05


def test_lines_a_second(benchmark: BenchmarkFixture, compiled: dict[str, str]) -> None:
    models = ("qwen2.5-0.5b", "llama-3.1-8b", "mistral-7b", "qwen3-14b")
    text = "".join(
        json.dumps({"id": n, "model": models[n % 4], "method": ("lora", "full", "qlora")[n % 3], "seq_len": 512 + n})
        + "\n"
        for n in range(LINES)
    )
    command = [sys.executable, "-m", "bot", "estimate", "--jsonl"]
    done = benchmark.pedantic(
        lambda: subprocess.run(command, input=text, capture_output=True, text=True, check=True, env=compiled),
        rounds=3, iterations=1, warmup_rounds=1,
    )  # fmt: skip
    assert done.stdout.count("\n") == LINES
    assert LINES / benchmark.stats.stats.median >= 500


def long_log() -> str:
    """200 kB of a run of many steps that ended out of memory."""
    step = (
        "{{'loss': {0:.4f}, 'grad_norm': {1:.4f}, 'learning_rate': {2:.2e}, 'epoch': {3:.2f}}}\n{3:.0f}%|# | {4}/4000\r"
    )
    steps = [step.format(3 / (n + 1), n % 7 / 7, 1e-4 / (n + 1), n / 50, n) for n in range(2400)]
    return LAUNCH + "".join(steps) + OUT_OF_MEMORY


def test_diagnosing_a_long_log(benchmark: BenchmarkFixture) -> None:
    text = long_log()
    assert 190_000 < len(text) < 260_000
    found = benchmark(service.diagnose, text)
    assert found.message.tried == 2 * 2**30 and found.causes
    assert benchmark.stats.stats.median <= 0.05


def test_a_whole_process(benchmark: BenchmarkFixture, compiled: dict[str, str]) -> None:
    benchmark.pedantic(asked, (compiled,), rounds=7, iterations=1, warmup_rounds=1)
    assert benchmark.stats.stats.median <= 0.6


def test_memory_of_a_whole_process() -> None:
    assert peak_bytes() <= 80e6


def asked(environment: dict[str, str]) -> None:
    """Ask in a process of its own."""
    subprocess.run(COMMAND, stdout=subprocess.DEVNULL, check=True, env=environment)


def peak_bytes() -> int:
    """Peak resident memory of the command; read by a small process, since a child begins with its parent's peak."""
    done = subprocess.run([sys.executable, "-c", WATCH, *COMMAND], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024
