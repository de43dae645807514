"""``vram-bot estimate``."""

import json

import pytest

from estimator.schema import Estimate
from tests.bot.cli.runner import run, typed

Capture = pytest.CaptureFixture[str]
SMALL = ("estimate", "--lang", "en", "--model", "qwen2.5-0.5b", "--method", "lora", "--gpu", "8GB")


def test_flags_give_a_breakdown(capsys: Capture) -> None:
    done = run(capsys, *SMALL, "--micro_batch", "2", "--adapter.rank", "8")
    assert done.status == 0
    assert "LoRA r8" in done.out
    assert "At the peak" in done.out


def test_json_is_an_estimate(capsys: Capture) -> None:
    found = Estimate.model_validate_json(run(capsys, *SMALL, "--json", "--seq-len", "2048").out)
    assert found.per_gpu is not None
    assert found.run is not None
    assert found.run.seq_len == 2048
    assert sum(block.bytes for block in found.per_gpu.at_peak) == found.per_gpu.allocated_peak


def test_explain_tells_every_block_and_assumption(capsys: Capture) -> None:
    plain = run(capsys, *SMALL, "--json")
    found = Estimate.model_validate_json(plain.out)
    told = run(capsys, *SMALL, "--explain").out
    assert found.per_gpu is not None
    unbroken = " ".join(told.split())
    assert all(part.why in unbroken for block in found.per_gpu.at_peak for part in block.parts or [block])
    assert all(one.why in unbroken for one in found.assumptions)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--method", "lora"], "no model was named"),
        (["--model", "7b", "--micro_batch", "0"], '"micro_batch" cannot be 0: it must be ≥ 1'),
        (["--model", "7b", "--method", "lroa"], "it must be one of full"),
        (["--model", "7b", "--sqe_len", "4"], "no option --sqe_len; did you mean seq"),
        (["--model", "../../etc/passwd"], "passwd"),
        (["--model", "7b", "--gpu", "banana"], "banana"),
    ],
)
def test_wrong_flags(flags: list[str], words: str, capsys: Capture) -> None:
    done = run(capsys, "estimate", "--lang", "en", *flags)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_lines(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"id": 1, "model": "0.5b", "method": "lora"},
        {"id": 2, "model": "0.5b", "metod": "lora"},
        {"id": 3, "model": "0.5b"},
    ]
    monkeypatch.setattr("sys.stdin", typed("\n".join(map(json.dumps, lines))))
    done = run(capsys, "estimate", "--jsonl")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["id"] for one in found] == [1, 2, 3]
    assert found[0]["per_gpu"]["allocated_peak"] > 0
    assert found[1] == {"id": 2, "error": {"field": "metod", **found[1]["error"]}}
    assert 'unknown field "metod"; did you mean method' in found[1]["error"]["message"]
    assert done.status == 2


def test_a_name_is_never_a_path(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("here")
    (folder / "config.json").write_text('{"model_type": "llama", "hidden_size": 64}')
    monkeypatch.chdir(folder)
    assert run(capsys, "estimate", "--model", "config.json").status == 2


def test_an_unknown_command_is_wrong_input(capsys: Capture) -> None:
    assert run(capsys, "estimat").status == 2


def test_our_own_fault_leaves_with_one(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.service.estimate_run", lambda *_: 1 / 0)
    monkeypatch.delenv("VRAM_BOT_DEBUG", raising=False)
    done = run(capsys, *SMALL)
    assert done.status == 1
    assert "ZeroDivisionError" in done.err


def test_explain_tells_the_blocks_of_every_phase(capsys: Capture) -> None:
    from estimator.estimate import estimate
    from estimator.schema import Run

    run_given = Run(model="qwen2.5-0.5b", method="lora", gpu="8GB")
    found = estimate(run_given, explain=True).per_gpu
    assert found is not None
    unbroken = " ".join(run(capsys, *SMALL, "--explain").out.split())
    for phase in found.phases:
        for block in phase.blocks or []:
            assert all(part.why in unbroken for part in block.parts or [block]), (phase.phase, block)
