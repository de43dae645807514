"""Logs: pasted, attached, or found in somebody's message by the context menu."""

from types import SimpleNamespace

import pytest

from bot.discord import attachments
from tests.bot.discord.messages import text
from tests.bot.discord.test_messages import answers, at

OOM = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 10, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB "
    "of which 1.20 GiB is free. Process 7 has 22.40 GiB memory in use. Of the allocated memory 12.10 GiB is allocated "
    "by PyTorch, and 9.80 GiB is reserved by PyTorch but unallocated.\n"
)
WHY = "Why did this fail?"


async def test_an_attached_log_is_read(lab: SimpleNamespace) -> None:
    log = ("step 1 loss 2.0\n" * 1000 + OOM).encode()
    await lab.ann.send(lab.channel, at(lab, "why?"), attachments=[("train.log", log)])
    (told,) = answers(lab)
    assert "9.80 GiB" in text(told) or "9.8 GiB" in text(told)


async def test_the_context_menu_reads_somebody_elses_message(lab: SimpleNamespace) -> None:
    poor = await lab.wei.send(lab.channel, "help please\n" + OOM)
    done = await lab.ann.context_menu(lab.channel, WHY, poor)
    assert "9.8 GiB" in text(done.response) or "9.80 GiB" in text(done.response)
    chinese = await lab.wei.context_menu(lab.channel, WHY, poor)
    assert not text(chinese.response).isascii()


async def test_the_context_menu_reads_an_attached_log(lab: SimpleNamespace) -> None:
    poor = await lab.wei.send(lab.channel, "", attachments=[("run.txt", OOM.encode("utf-16"))])
    done = await lab.ann.context_menu(lab.channel, WHY, poor)
    assert "9.8 GiB" in text(done.response) or "9.80 GiB" in text(done.response)


async def test_a_message_that_tells_nothing_gets_an_answer_too(lab: SimpleNamespace) -> None:
    poor = await lab.wei.send(lab.channel, "it broke")
    done = await lab.ann.context_menu(lab.channel, WHY, poor)
    assert "To decide" in text(done.response) or "Paste" in text(done.response)


async def test_a_screenshot_is_declined(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, ""), attachments=[("oom.png", b"\x89PNG")])
    assert "cannot read pictures" in text(answers(lab)[-1])


@pytest.mark.parametrize(
    ("name", "content"),
    [("dump.bin", b"x"), ("log.txt", b"abc\x00\x01"), ("log.gz", b"\x1f\x8b"), ("huge.log", b"x" * 2000)],
)
async def test_what_cannot_be_read_is_named(
    lab: SimpleNamespace, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "LARGEST", 1000)
    await lab.ann.send(lab.channel, at(lab, "llama3 8b lora 3090"), attachments=[(name, content)])
    answer, told = answers(lab)
    assert "FITS" in text(answer) and name in text(told) and "8 MiB" in text(told)


async def test_of_many_files_the_first_three_are_read(lab: SimpleNamespace) -> None:
    files = [(f"part{number}.log", OOM.encode()) for number in range(5)]
    await lab.ann.send(lab.channel, at(lab, "why?"), attachments=files)
    _, told = answers(lab)
    assert "part3.log" in text(told) and "part4.log" in text(told) and "part2.log" not in text(told)


async def test_an_unreadable_file_alone_is_told_and_nothing_else(lab: SimpleNamespace) -> None:
    await lab.ann.send(lab.channel, at(lab, ""), attachments=[("@everyone.zip", b"PK")])
    (told,) = answers(lab)
    assert ".zip" in text(told) and "@everyone" not in text(told)
