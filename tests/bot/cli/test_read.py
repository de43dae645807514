"""``vram-bot read``."""

import json
from pathlib import Path

import pytest

from tests.bot.cli.runner import run, typed

Capture = pytest.CaptureFixture[str]

QLORA = (
    "base_model: Qwen/Qwen2.5-7B\nadapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_rank: 16\nmicro_batch_size: 2\n"
)


def test_a_file_is_told_with_keys_and_lines(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(QLORA)
    done = run(capsys, "read", str(path), "--lang", "en")
    assert done.status == 0
    assert "Read as axolotl" in done.out
    assert "lora_r (line 4)" in done.out
    assert "Unknown to axolotl" in done.out
    assert "lora_rank" in done.out


def test_chinese(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed(QLORA))
    done = run(capsys, "read", "-", "--lang", "zh")
    assert "按 axolotl 解读" in done.out
    assert "lora_r（第 4 行）" in done.out
    assert "默认值" in done.out


def test_json_has_the_shape_of_the_contract(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed(QLORA))
    found = json.loads(run(capsys, "read", "--json").out)
    assert found["run"]["adapter"]["rank"] == 32
    assert found["from"]["adapter.rank"] == "lora_r (line 4)"
    assert found["from"]["seq_len"].startswith("default of axolotl")
    assert found["unknown_keys"] == ["lora_rank"]
    assert found["error"] is None


def test_lines_keep_their_ids(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"id": 1, "text": QLORA}, {"id": 2, "text": "hello"}, {"id": 3}]
    monkeypatch.setattr("sys.stdin", typed("".join(json.dumps(one) + "\n" for one in lines)))
    found = [json.loads(line) for line in run(capsys, "read", "--jsonl").out.splitlines()]
    assert [one["id"] for one in found] == [1, 2, 3]
    assert found[0]["run"]["method"] == "qlora"
    assert "recognised" in found[1]["error"]["message"]
    assert "text" in found[2]["error"]["message"]


def test_what_cannot_be_read_is_said(capsys: Capture, tmp_path: Path) -> None:
    assert run(capsys, "read", str(tmp_path / "none.yaml")).status == 2
    path = tmp_path / "words.txt"
    path.write_text("the weather is nice")
    done = run(capsys, "read", str(path), "--lang", "en")
    assert done.status == 2
    assert "no configuration" in done.err


def test_the_nearest_key_is_offered_for_an_unknown_one(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed(QLORA))
    assert "lora_rank (lora_r?)" in run(capsys, "read", "--lang", "en").out
