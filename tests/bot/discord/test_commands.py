"""The slash commands as people use them."""

from types import SimpleNamespace
from typing import Any

import aiohttp
import discord
import pytest

from tests.bot.discord.messages import custom_ids, labels, text

SENTENCE, DEFERRED = 4, 5
"""Kinds of a first answer to an interaction."""


def first_answers(lab: SimpleNamespace) -> list[int]:
    sent = (one for one in lab.env.http_requests if one.path.endswith("/callback"))
    return [one.json["type"] for one in sent]


async def test_vram_is_deferred_and_answered_with_a_card(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="0.5b", method="lora", gpu="8GB")
    assert first_answers(lab)[-1] == DEFERRED and not done.ephemeral
    assert "Qwen2.5-0.5B" in text(done.response) and "FITS" in text(done.response)
    assert done.response.flags.components_v2
    picture = done.response.attachments[0]
    assert picture.filename == "memory.png" and "1.1" in (picture.description or "")


async def test_the_answer_is_in_the_language_of_the_one_who_asks(lab: SimpleNamespace) -> None:
    done = await lab.wei.slash(lab.channel, "vram", model="0.5b", method="lora", gpu="8GB")
    assert "放得下" in text(done.response) and "FITS" not in text(done.response)
    assert "放得下" in text(done.response)
    assert any("查看" in label or "计算" in label for label in labels(done.response))


async def test_every_option_reaches_the_run(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(
        lab.channel,
        "vram",
        model="Qwen/Qwen2.5-7B",
        method="lora",
        gpu="A100 SXM4 80GB",
        gpus=2,
        batch=2,
        length=2048,
        precision="bf16",
        quantisation="int8",
        framework="axolotl",
        checkpointing="full",
        optimizer="adamw-8bit",
        parallelism="ddp",
    )
    shown = text(done.response)
    assert "Qwen2.5-7B" in shown and "LoRA" in shown and "2 x A100 SXM4 80GB" in shown and "int8" in shown
    math = await lab.ann.click(done.response, custom_id=custom_ids(done.response, "math")[0])
    pages = text(math.response) + "".join(map(text, math.followups))
    assert "axolotl" not in pages.partition("Assumed")[2], "what was given is not assumed"


async def test_a_private_answer_is_seen_by_the_asker_alone(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="0.5b", method="lora", gpu="8GB", private=True)
    assert done.ephemeral and "FITS" in text(done.response)


async def test_an_unknown_model_gets_one_sentence(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="@everyone <@1> [x](https://a.b) `zzz`", gpu="8GB")
    shown = text(done.response)
    assert "zzz" in shown and "@everyone" not in shown and "<@1>" not in shown and "https://" not in shown


async def test_a_way_to_share_the_work_that_nobody_knows_is_asked_back(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="7b", gpu="24GB", gpus=2, parallelism="magic")
    assert "magic" in text(done.response) and "zero3" in text(done.response)


async def test_an_open_method_is_answered_with_a_button_for_each_reading(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="7b", gpu="24GB")
    readings = custom_ids(done.response, "reading")
    assert len(readings) >= 2
    alone = await lab.ann.click(done.response, custom_id=readings[-1])
    assert "LoRA" in text(alone.response) and custom_ids(alone.response, "math")


@pytest.mark.parametrize("name", ["help", "forget"])
async def test_help_and_forget_are_private_in_both_languages(lab: SimpleNamespace, name: str) -> None:
    english = await lab.ann.slash(lab.channel, name)
    chinese = await lab.wei.slash(lab.channel, name)
    assert english.ephemeral and chinese.ephemeral
    assert text(english.response).isascii()
    assert not text(chinese.response).isascii()


async def test_an_example_of_the_help_can_be_pressed(lab: SimpleNamespace) -> None:
    shown = await lab.wei.slash(lab.channel, "help")
    done = await lab.wei.click(shown.response, custom_id=custom_ids(shown.response, "example")[0])
    assert "GiB" in text(done.response)


async def test_autocompletion_narrows_and_never_exceeds_25(lab: SimpleNamespace) -> None:
    choices = await lab.ann.autocomplete(lab.channel, "vram", "model", "qwen 7b")
    assert 0 < len(choices) <= 25 and all("7b" in one["name"].lower() for one in choices)
    every = await lab.ann.autocomplete(lab.channel, "vram", "gpu", "")
    assert len(every) == 25
    assert (await lab.ann.autocomplete(lab.channel, "vram", "gpu", "4090"))[0]["value"] == "RTX 4090"
    assert await lab.ann.autocomplete(lab.channel, "vram", "parallelism", "zero") != []
    assert await lab.ann.autocomplete(lab.channel, "vram", "model", "☃" * 60) == []


async def test_who_asks_too_often_is_told_when_to_ask_again(lab: SimpleNamespace) -> None:
    for _ in range(12):
        await lab.ann.slash(lab.channel, "help")
    refused = await lab.ann.slash(lab.channel, "help")
    assert refused.ephemeral and "<t:" in refused.response.content
    assert "wait" not in text((await lab.wei.slash(lab.channel, "help")).response)
    assert first_answers(lab)[-2:] == [SENTENCE, DEFERRED], "others are not held up"


async def test_without_the_right_to_attach_there_is_no_picture(lab: SimpleNamespace) -> None:
    quiet = lab.guild.create_text_channel(
        "quiet", overwrites={lab.guild.default_role: discord.PermissionOverwrite(attach_files=False)}
    )
    done = await lab.ann.slash(quiet, "vram", model="0.5b", method="lora", gpu="8GB")
    assert "FITS" in text(done.response) and not done.response.attachments


async def test_a_fault_of_ours_is_one_sentence_with_a_number(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("bot.discord.commands.typed_question", broken)
    done = await lab.ann.slash(lab.channel, "vram", model="0.5b")
    told = (done.response.content if done.response else "") + "".join(one.content for one in done.followups)
    assert "Incident " in told and "secret" not in told
    assert len(lab.env.errors) == 1
    number = told.partition("Incident ")[2][:8]
    assert number in caplog.text and "secret detail" in caplog.text


@pytest.mark.parametrize("name", ["forget", "help"])
async def test_a_first_answer_whose_receipt_is_lost_is_not_given_twice(
    lab: SimpleNamespace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = discord.InteractionResponse.defer
    lost: list[bool] = []

    async def cut(self: discord.InteractionResponse[Any], **values: Any) -> Any:
        done = await told(self, **values)
        if not lost:
            lost.append(True)
            self._response_type = None
            raise aiohttp.ServerDisconnectedError
        return done

    monkeypatch.setattr(discord.InteractionResponse, "defer", cut)
    done = await lab.ann.slash(lab.channel, name)
    assert lost and done.ephemeral and text(done.response) and not done.followups
    assert "Incident" not in text(done.response)
