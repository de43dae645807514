"""Buttons: what each does, for whom, and after a restart."""

from pathlib import Path
from types import SimpleNamespace

from tests.bot.discord.conftest import made_bot
from tests.bot.discord.messages import custom_ids, text


async def asked(lab: SimpleNamespace, gpu: str = "RTX 3090") -> object:
    done = await lab.ann.slash(lab.channel, "vram", model="llama3 8b", method="lora", gpu=gpu)
    return done.response


async def test_the_math_and_the_flags_are_shown_privately(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    math = await lab.ann.click(card, custom_id=custom_ids(card, "math")[0])
    flags = await lab.ann.click(card, custom_id=custom_ids(card, "flags")[0])
    assert math.ephemeral and "8,030,261,248" in text(math.response)
    assert flags.ephemeral and text(flags.response)


async def test_what_if_makes_a_new_card_that_differs(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    loss, checkpointing = custom_ids(card, "what_if")
    other = await lab.ann.click(card, custom_id=loss)
    assert not other.ephemeral and "17.2 GiB" in text(other.response)
    third = await lab.ann.click(other.response, custom_id=custom_ids(other.response, "what_if")[-1])
    assert text(third.response) not in (text(card), text(other.response))


async def test_a_step_that_is_applied_keeps_its_promise(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "vram", model="7b", method="full", gpu="24GB")
    steps = custom_ids(done.response, "apply")
    if not steps:
        return  # no move of the estimator's applies
    after = await lab.ann.click(done.response, custom_id=steps[0])
    assert text(after.response) != text(done.response) and "GiB" in text(after.response)


async def test_what_others_press_only_they_see(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    other = await lab.wei.click(card, custom_id=custom_ids(card, "what_if")[0])
    assert other.ephemeral and "放" in text(other.response), "in the language of the one who presses"


async def test_buttons_work_after_a_restart(lab: SimpleNamespace, tmp_path: Path) -> None:
    card = await asked(lab)
    await lab.env.restart_bot(made_bot(tmp_path))
    other = await lab.ann.click(card, custom_id=custom_ids(card, "what_if")[0])
    assert "17.2 GiB" in text(other.response)


async def test_a_follow_up_builds_on_the_card_that_a_button_made(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    await lab.ann.click(card, custom_id=custom_ids(card, "what_if")[0])
    await lab.ann.send(lab.channel, f"<@{lab.env.bot.user.id}> and with qlora?")
    assert "QLoRA" in text(lab.channel.last_message) and "Meta-Llama-3-8B" in text(lab.channel.last_message)


async def test_what_was_forgotten_is_gone(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    forgotten = await lab.ann.slash(lab.channel, "forget")
    assert "2 entries" in forgotten.response.content
    pressed = await lab.ann.click(card, custom_id=custom_ids(card, "what_if")[0])
    assert "Ask again" in text(pressed.response)
    await lab.ann.send(lab.channel, f"<@{lab.env.bot.user.id}> and with 4-bit?")
    assert "Meta-Llama" not in text(lab.channel.last_message)


async def test_a_button_of_another_time_is_told_kindly(lab: SimpleNamespace, tmp_path: Path) -> None:
    card = await asked(lab)
    for path in tmp_path.glob("bot.db*"):
        assert path.exists()
    await lab.env.restart_bot(made_bot(tmp_path / "new"))
    pressed = await lab.wei.click(card, custom_id=custom_ids(card, "math")[0])
    assert pressed.ephemeral and "重新提问" in text(pressed.response)
