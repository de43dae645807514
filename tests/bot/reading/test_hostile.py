"""What must not be run, opened, expanded or waited for."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reading.read import read_paste
from tests.bot.reading.scoring import cases

TEXTS = [case["text"] for case in cases()]
MARKS = [
    "\n",
    "```",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "$(",
    ")",
    "&",
    "*a",
    "!!python/object:os.system",
    "\\",
    "<<EOF",
    ": ",
    "- ",
]


@pytest.mark.parametrize(
    "text",
    [
        'base_model: !!python/object/apply:os.system ["touch canary"]\nadapter: lora\n',
        "a: !!python/name:os.getcwd\nmicro_batch_size: 1\n",
        "base_model: x\nlora_r: !!python/object/new:type [z, [], {}]",
        "base_model: [unclosed\nadapter: !!python/object/apply:os.system ['touch canary']\nlora_r: 8",
    ],
)
def test_tags_that_build_objects_are_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reading = read_paste(text)
    assert reading.error
    assert "tag" in reading.error.message
    assert reading.run == {}
    assert list(tmp_path.iterdir()) == []


def test_nothing_in_a_script_or_shell_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    read_paste(
        "N=$(touch canary; echo 2)\ntrl sft --model_name_or_path `touch canary` --per_device_train_batch_size $N"
    )
    read_paste("import os\nargs = TrainingArguments(per_device_train_batch_size=os.system('touch canary'))")
    read_paste("args = SFTConfig(per_device_train_batch_size=__import__('os').system('touch canary') or 2)")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_named_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    reading = read_paste("deepspeed --num_gpus 2 run_clm.py --deepspeed ds.json --model_name_or_path gpt2")
    assert "zero" not in reading.run["parallel"]


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)
BOMBS = {
    "laughs": LAUGHS,
    "cycle": "base_model: &x\n  y: *x\n",
    "documents": "".join(f"--- \na: &a [{'x,' * 200}]\nb: [{'*a,' * 200}]\n" for _ in range(60)),
    "deep flow": "a: " + "[" * 100_000,
    "deep block": "".join("  " * depth + f"k{depth}:\n" for depth in range(500)),
    "deep json": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "deep toml": "a = " + "[" * 20_000,
    "dotted toml": "[x]\n" + "a." * 20_000 + "b = 1",
    "deep python": "args = TrainingArguments(x=" + "(" * 50_000,
    "minus python": "args = TrainingArguments(x=" + "-" * 200_000 + "1)",
    "chain python": "import x\na = SFTConfig(b=" + "c." * 100_000 + "d)",
    "sum python": "x = 1\nargs = SFTConfig(b=" + "1+" * 50_000 + "1)",
    "power": "args = TrainingArguments(per_device_train_batch_size=9**9**9)",
    "digits": "micro_batch_size: " + "9" * 5000 + "\nbase_model: x\nadapter: lora",
    "braces": "trl sft --x " + "${" * 50_000,
    "substitutions": "trl sft --x " + "$(" * 50_000,
    "arrays": "A=(x x x x x x x x)\n" + "".join("A=(${A[@]} ${A[@]})\n" for _ in range(60)) + "trl sft ${A[@]}",
    "doubling": "A=xxxxxxxx\n" + "A=$A$A\n" * 100 + "trl sft --model_name_or_path $A",
    "fences": "```\n" * 50_000,
    "heredocs": "cat <<E\n" * 30_000,
    "quotes": "trl sft '" * 50_000,
    "many keys": "".join(f"key_{number}: value\n" for number in range(60_000)),
    "many commands": "".join(f"echo {number} --foo bar\n" for number in range(48_000)) + "trl sft --bf16",
    "many statements": "".join(f"a{number} = foo(b={number})\n" for number in range(35_000)),
    "spaces": "a: " + " " * 500_000 + "b\nc" + "\t" * 300_000,
    "one line": "base_model: " + "x" * 1_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_read_or_refused_at_once(name: str) -> None:
    started = time.process_time()
    reading = read_paste(BOMBS[name])
    assert time.process_time() - started < 5
    assert len(reading.model_dump_json()) < 100_000


def test_a_mebibyte_is_the_most() -> None:
    assert read_paste("base_model: x\n" * 100_000).error


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gives_a_reading(text: str) -> None:
    json.loads(read_paste(text).model_dump_json(by_alias=True))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_a_broken_config_gives_a_reading(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        text = text[:start] + data.draw(st.sampled_from([*MARKS, ""])) + text[end:]
    reading = read_paste(text)
    json.loads(reading.model_dump_json(by_alias=True))
    assert reading.error or reading.run


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEXTS), st.sampled_from(TEXTS))
def test_two_pastes_together_give_a_reading(one: str, other: str) -> None:
    read_paste(f"{one}\n\n{other}")
