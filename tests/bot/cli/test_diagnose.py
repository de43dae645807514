"""``vram-bot diagnose`` with files, pipes and lines."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bot.cli.runner import Done, run, typed

LOAD = (
    "LoRA on llama-2-70b, 8x A100 80GB, dies while loading.\n"
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB (GPU 7; 79.32 GiB total capacity; "
    "78.58 GiB already allocated; 259.56 MiB free; 78.58 GiB reserved in total by PyTorch)\n"
    "Loading checkpoint shards:  53%|     | 8/15"
)


@pytest.fixture
def piped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs the command with a text on standard input."""

    def work(text: str, *arguments: str) -> Done:
        monkeypatch.setattr("sys.stdin", typed(text))
        return run(capsys, "diagnose", *arguments)

    return work


def test_a_file_is_diagnosed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOAD, "utf-8")
    done = run(capsys, "diagnose", str(tmp_path / "log.txt"))
    assert done.status == 0
    assert done.out.startswith("Most likely: The weights alone do not fit (loading).")


def test_a_pipe_is_diagnosed_as_json(piped: Callable[..., Done]) -> None:
    done = piped(LOAD, "-", "--json")
    found = json.loads(done.out)
    assert found["message"]["format"] == "torch_1.5_to_2.0"
    assert found["message"]["total"] == round(79.32 * 2**30)
    assert found["causes"][0]["id"] == "weights_exceed_gpu"
    assert found["run"]["gpu_count"] == 8


def test_lines_keep_their_ids(piped: Callable[..., Done]) -> None:
    lines = [
        {"id": 7, "text": LOAD},
        {"id": 8, "text": "单卡 7B lora 爆显存", "lang": "zh"},
        {"id": 9},
        {"id": 10, "x": 1},
    ]
    done = piped("".join(json.dumps(line) + "\n" for line in lines), "--jsonl")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["id"] for one in found] == [7, 8, 9, 10]
    assert found[1]["lang"] == "zh"
    assert found[2]["error"]["field"] == "text"
    assert found[3]["error"]["field"] == "x"
    assert done.status == 2


def test_nothing_and_a_missing_file_are_told(piped: Callable[..., Done]) -> None:
    assert piped(" ", "-").status == 2
    done = piped("", "no/such/file")
    assert done.status == 2
    assert "no/such/file" in done.err


def test_what_says_nothing_is_not_guessed_at(piped: Callable[..., Done]) -> None:
    assert piped("\x00\x01 lorem ipsum dolor", "-", "--lang", "en").out.startswith("I cannot tell why from this.")
