"""The pretended card: which builds need it, and what is said where it cannot be compiled."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bot.tracing import guard
from estimator.errors import EstimatorError


def a_torch(folder: Path, cuda: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "version.py").write_text(f"__version__ = '2.13.0'\ncuda: Optional[str] = {cuda}\n")
    monkeypatch.setattr(guard, "find_spec", lambda _: SimpleNamespace(origin=str(folder / "__init__.py")))
    monkeypatch.setenv("VRAM_BOT_DATA", str(folder / "data"))
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_a_build_with_cuda_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_torch(tmp_path, "'13.0'", monkeypatch)
    monkeypatch.setattr(guard, "_compile", lambda *_: pytest.fail("compiled"))
    guard.load()


def test_torch_that_is_loaded_already_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_torch(tmp_path, "None", monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(guard, "_compile", lambda *_: pytest.fail("compiled"))
    guard.load()


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_torch(tmp_path, "None", monkeypatch)
    monkeypatch.setattr(guard.shutil, "which", lambda _: None)
    with pytest.raises(EstimatorError, match=r"install a C\+\+ compiler"):
        guard.load()


@pytest.mark.skipif(not any(map(guard.shutil.which, guard.COMPILERS)), reason="no C++ compiler")
def test_headers_that_do_not_fit_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_torch(tmp_path, "None", monkeypatch)
    with pytest.raises(EstimatorError, match=r"does not compile against this torch .*; use torch 2\.13"):
        guard.load()
    assert not list((tmp_path / "data").rglob("*.so"))
