"""Each family of messages, as the libraries print them, gives its format and its numbers to the byte."""

import json
from pathlib import Path

import pytest

from knowledge.logs.families import is_log
from knowledge.logs.reading import read_log
from knowledge.logs.sizes import bytes_of

GIB = 2**30


def gib(number: str) -> int:
    size = bytes_of(number, "GiB")
    assert size is not None
    return size


LINES = (Path(__file__).parents[2] / "data" / "messages.jsonl").read_text("utf-8").splitlines()
ROWS = [json.loads(line) for line in LINES]
MESSAGES = {row["name"]: (row["text"], row["format"], row["numbers"]) for row in ROWS}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_read(name: str) -> None:
    text, form, numbers = MESSAGES[name]
    log = read_log(text)
    have = {**log.message.model_dump(), **log.derived}
    assert have["format"] == form
    assert {key: have.get(key) for key in numbers} == numbers
    assert is_log(text)


@pytest.mark.parametrize(
    "told",
    ["it fails to allocate 3.25 GiB in the loss", "a request for another 3.25 GiB", "cannot allocate 3.25 GiB",
     "a 3.25 GiB allocation is refused", "最后申请 3.25 GiB 时报错"],
)  # fmt: skip
def test_sizes_that_people_retell(told: str) -> None:
    assert read_log(told).message.size("tried") == gib("3.25")
    assert not is_log(told)


def test_what_lies_outside_pytorch_is_worked_out() -> None:
    log = read_log(MESSAGES["torch 1.5 to 2.0"][0])
    free = bytes_of("907.38", "MiB")
    assert free is not None
    assert log.derived["outside_pytorch"] == gib("21.99") - free - gib("20.71")
    assert log.derived["unused_cache"] == gib("20.71") - gib("16.79")


def test_lines_may_be_broken_anywhere_and_cut_off() -> None:
    text = MESSAGES["torch 2.2 and later, with graphs"][0]
    broken = read_log(text.replace(" ", "\n   "))
    assert broken.message.model_dump() == read_log(text).message.model_dump()
    cut = read_log(text[: text.index(" Including")])
    assert cut.message.size("free") == gib("1.94")
    assert cut.message.size("allocated") is None


def test_of_many_ranks_the_last_complete_message_counts() -> None:
    text, cut = MESSAGES["torch 1.5 to 2.0"][0], "CUDA out of memory. Tried to allocate 3.00 GiB (GPU 5; 21"
    log = read_log("\n".join(f"[rank{rank}]: {text}" for rank in range(4)) + f"\n[rank5]: {cut}")
    assert log.message.device == "GPU 4"
    assert log.ranks == {0, 1, 2, 3, 5}


def test_a_number_is_not_taken_from_another_word() -> None:
    assert read_log("torch.cuda.OutOfMemoryError").message.format == "no_numbers"
    assert read_log("MemoryError: Unable to allocate 2.00 GiB for an array").message.format == "kernel_oom_kill"


def test_sizes_are_exact() -> None:
    assert bytes_of("0.1", "GiB") == round(0.1 * GIB)
    assert bytes_of("1,234", "bytes") == 1234
    assert bytes_of("1" * 41, "B") is None
    assert bytes_of("1.2.3", "GiB") is None


@pytest.mark.parametrize("text", ["thanks, that worked with bs1!", "can a 3090 train 7b lora?", "", "显存多大合适"])
def test_talk_is_no_log(text: str) -> None:
    assert not is_log(text)
