"""``vram-bot trace``, with the measuring itself replaced: it needs an extra."""

import json
from pathlib import Path

import pytest

from bot import service
from bot.tracing.gpu_check import Measured
from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from tests.bot.cli.runner import run

Capture = pytest.CaptureFixture[str]
LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}  # fmt: skip


def a_trace(asked: Run) -> Estimate:
    """An estimate that stands in for a trace, one hundredth higher in the forward."""
    found = estimate(asked)
    assert found.per_gpu is not None
    phases = [one for one in found.per_gpu.phases if one.phase != "load"]
    phases[0] = phases[0].model_copy(update={"allocated_peak": int(phases[0].allocated_peak * 1.01)})
    return found.model_copy(update={"per_gpu": found.per_gpu.model_copy(update={"phases": phases})})


def test_phases_stand_side_by_side(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(service, "trace", a_trace)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    flags = ("--lang", "en", "--method", "full", "--seq-len", "512")
    done = run(capsys, "trace", str(tmp_path), *flags)
    lines = {line[:16].strip(): line for line in done.out.splitlines()}
    assert done.status == 0
    assert lines["forward"].endswith("-0.990 %")
    assert lines["backward"].endswith("+0.000 %")
    assert "Loading is estimated, not traced" in done.out
    assert run(capsys, "trace", str(tmp_path / "config.json"), *flags).out == done.out.replace(
        str(tmp_path), str(tmp_path / "config.json")
    )


def test_json_is_the_traced_estimate(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "trace", a_trace)
    found = Estimate.model_validate_json(run(capsys, "trace", "qwen2.5-0.5b", "--json").out)
    assert found.per_gpu is not None
    assert {one.phase for one in found.per_gpu.phases} == {"forward", "loss", "backward", "optimizer_step"}


def test_a_real_card_is_set_against_the_estimate(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = {"torch": "2.13.0", "peft": None}
    monkeypatch.setattr(service, "measure", lambda _: Measured(2**31, 2**32, "NVIDIA L4", stack))
    out = run(capsys, "trace", "qwen2.5-0.5b", "--lang", "en", "--gpu-check").out
    assert "on NVIDIA L4 (torch 2.13.0)" in out
    assert "2.000 GiB" in out
    assert "4.000 GiB" in out


@pytest.mark.parametrize(
    ("config", "words"),
    [("nothing-like-a-model", "nothing-like-a-model"), ("{broken", "cannot be read as a config.json"), ("[1]", "list")],
)
def test_wrong_configs(config: str, words: str, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    if config[0] in "{[":
        path.write_text(config)
    done = run(capsys, "trace", str(path) if path.exists() else config, "--lang", "en")
    assert done.status == 2
    assert words in done.err


def test_what_cannot_be_traced_is_one_sentence(capsys: Capture) -> None:
    done = run(capsys, "trace", "qwen2.5-0.5b", "--lang", "zh", "--gpu_count", "2")
    assert (done.status, done.err.strip()) == (2, "跟踪器只跟踪单卡：请设 gpu_count 为 1")
