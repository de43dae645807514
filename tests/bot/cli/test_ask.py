"""``vram-bot ask`` and ``vram-bot chat``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.answer import Answer
from tests.bot.cli.runner import run, typed

Capture = pytest.CaptureFixture[str]


def test_the_question_of_the_readme(capsys: Capture) -> None:
    done = run(capsys, "ask", "/vram model:0.5b method:lora gpu:8GB")
    assert done.status == 0
    assert done.out.startswith('Qwen2.5-0.5B (stand-in for "0.5b") · LoRA')
    assert "FITS" in done.out
    assert "weights" in done.out
    assert done.err == ""


def test_a_chinese_question_gets_a_chinese_answer(capsys: Capture) -> None:
    done = run(capsys, "ask", "8G显卡能lora微调qwen2.5-0.5b吗")
    assert done.status == 0
    assert "放得下" in done.out
    assert "模型权重" in done.out


def test_the_language_can_be_chosen(capsys: Capture) -> None:
    assert "放得下" in run(capsys, "ask", "0.5b lora 8GB", "--lang", "zh").out


def test_json_is_an_answer(capsys: Capture) -> None:
    found = Answer.model_validate_json(run(capsys, "ask", "--json", "0.5b lora 8GB").out)
    assert found.reply == "answer"
    assert found.runs[0]["resolved_model"] == "Qwen/Qwen2.5-0.5B"
    assert found.estimates[0].per_gpu is not None
    assert found.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("7b lora gpu:0GB", "A card's memory must be between"),
        ("-5b lora", "A model has between"),
        ("7b lora 24GB bs -4", "The batch must be a whole number"),
        ("/vram model:banana gpu:24GB", "no model is known as 'banana'"),
        ("/vram model:7b method:lora gpu:banana", "no GPU is known as 'banana'"),
        ("/vram model:7b method:lora gpu:24GB optimizer:sgdd", 'I cannot read "sgdd" as optimizer'),
    ],
)
def test_wrong_values_are_told_on_standard_error(text: str, words: str, capsys: Capture) -> None:
    done = run(capsys, "ask", text)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_nothing_asked(capsys: Capture) -> None:
    done = run(capsys, "ask", "--lang", "en")
    assert done.status == 2
    assert "nothing was asked" in done.err


def test_chatter_gets_no_answer(capsys: Capture) -> None:
    done = run(capsys, "ask", "good morning")
    assert (done.status, done.out) == (0, "")


def test_lines_keep_order_and_history(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"id": 1, "text": "llama3 8b lora on a 3090?"},
        {"id": 2, "text": "and with 4-bit?", "history": ["llama3 8b lora on a 3090?"]},
        {"id": 3, "lang": "zh", "text": "0.5b lora 8GB"},
        {"id": 4},
        {"id": 5, "text": "7b", "history": [3]},
        {"id": 6, "text": "7b", "history": "x"},
        {"id": 7, "text": "7b", "lang": "fr"},
        {"id": 8, "text": "7b", "histroy": []},
        {"id": 9, "text": "1" * 100_000},
    ]
    monkeypatch.setattr("sys.stdin", typed("\n".join(json.dumps(line) for line in lines)))
    done = run(capsys, "ask", "--jsonl")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert done.status == 2
    assert [one["id"] for one in found] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [one["error"]["field"] for one in found if "error" in one] == [
        "text", "history", "history", "lang", "histroy",
    ]  # fmt: skip
    assert found[1]["runs"][0]["method"] == "qlora"
    assert found[2]["lang"] == "zh"
    assert "text" in found[3]["error"]["message"]
    assert "history" in found[4]["error"]["message"]


def test_a_conversation_goes_on_from_the_last_run(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed("0.5b lora 8GB\nlol\nand full fine-tuning?\n\nnever read"))
    done = run(capsys, "chat", "--lang", "en")
    first, second = done.out.strip().split("\n\n")
    assert "LoRA" in first
    assert second.startswith('Qwen2.5-0.5B (stand-in for "0.5b") · full fine-tuning')
    assert "nothing to answer" in done.err


def test_half_a_surrogate_pair_breaks_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed(r'{"id": "\ud800", "text": "model:\ud800x 24GB"}'))
    done = run(capsys, "ask", "--jsonl")
    assert json.loads(done.out)["id"] == "\ud800"


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"text": "7b lora 24GB"}\n' * 60)
    with lines.open() as source:
        asked = subprocess.Popen(
            [sys.executable, "-m", "bot", "ask", "--jsonl"],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert asked.stdout
        assert asked.stderr
        assert asked.stdout.readline().startswith(b"{")
        asked.stdout.close()
        assert asked.stderr.read() == b""
        asked.stderr.close()
        assert asked.wait() == 0
