"""A pretended CUDA device for builds of PyTorch without CUDA, so that fake CUDA tensors run forward and backward."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from bot.folders import cache_folder
from estimator.errors import EstimatorError

SOURCE = Path(__file__).with_name("guard.cpp")
COMPILERS = ("c++", "g++", "clang++")


def load() -> None:
    """Register the pretended device; once a process, before torch is imported. Raises EstimatorError.

    A build with CUDA has the real one, which serves fake tensors as well where there is a card.
    """
    folder = _torch_folder()
    if _has_cuda(folder) or "torch" in sys.modules:
        return
    ctypes.CDLL(str(_built(folder)), mode=ctypes.RTLD_GLOBAL)


def _torch_folder() -> Path:
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _has_cuda(folder: Path) -> bool:
    """Whether this build knows CUDA, read from the file that says so: importing torch would be too early."""
    lines = (folder / "version.py").read_text("utf-8").splitlines()
    return any(line.startswith("cuda:") and not line.rstrip().endswith("None") for line in lines)


def _built(folder: Path) -> Path:
    """The guard compiled against this torch (about two seconds), kept for the next time."""
    version = (folder / "version.py").read_bytes()
    key = hashlib.sha256(SOURCE.read_bytes() + version + str(folder).encode()).hexdigest()[:16]
    target = cache_folder("trace") / f"guard-{key}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "guard.so"
            _compile(folder, made)
            made.replace(target)
    return target


def _compile(folder: Path, target: Path) -> None:
    found = (shutil.which(name) for name in (os.environ.get("CXX", ""), *COMPILERS) if name)
    compiler = next((path for path in found if path), None)
    if compiler is None:
        raise EstimatorError(
            "tracing without a GPU compiles one small file: install a C++ compiler (g++ or clang++)",
            "在没有 GPU 的机器上跟踪需要编译一个小文件：请安装 C++ 编译器（g++ 或 clang++）",
        )
    libraries = folder / "lib"
    command = [compiler, "-std=c++20", "-shared", "-fPIC", "-O1", "-I", str(folder / "include"), str(SOURCE), "-o",
               str(target), f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed", "-lc10",
               "-ltorch_cpu"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own file
    if done.returncode:
        detail = next((line for line in done.stderr.splitlines() if "error" in line), "no message")[:160]
        raise EstimatorError(
            f"the tracer's guard does not compile against this torch ({detail}); use torch 2.13",
            f"跟踪器的小文件无法针对此版本 torch 编译（{detail}）；请使用 torch 2.13",
        )
