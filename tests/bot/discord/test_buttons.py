"""Buttons: what each does, for whom, and after a restart."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bot import service
from estimator.schema import Estimate, Run, Step
from tests.bot.discord.conftest import made_bot
from tests.bot.discord.messages import custom_ids, text


async def asked(lab: SimpleNamespace, gpu: str = "RTX 3090") -> object:
    done = await lab.ann.slash(lab.channel, "vram", model="llama3 8b", method="lora", gpu=gpu)
    return done.response


STEP = Step(
    id="qlora",
    title="QLoRA",
    title_zh="QLoRA",
    change={"method": "qlora", "weight_format": "nf4"},
    allocated_peak=6_000_000_000,
    saves=10_000_000_000,
    speed_cost="small",
    quality_cost="small",
    money_cost="none",
    verdict="fits",
    commands=["--load_in_4bit"],
)


@pytest.fixture
def with_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every estimate proposes a step, whatever the estimator would propose."""
    made = service.estimate

    def proposed(run: Run, others: bool = False) -> Estimate:
        return made(run, others).model_copy(update={"downgrades": [STEP]})

    monkeypatch.setattr(service, "estimate", proposed)


async def test_the_math_is_shown_privately(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    math = await lab.ann.click(card, custom_id=custom_ids(card, "math")[0])
    assert math.ephemeral and "8,030,261,248" in text(math.response)


async def test_flags_to_copy_are_shown_privately(with_a_step: None, lab: SimpleNamespace) -> None:
    card = await asked(lab)
    flags = await lab.ann.click(card, custom_id=custom_ids(card, "flags")[0])
    assert flags.ephemeral and "--load_in_4bit" in text(flags.response)


async def test_what_if_makes_a_new_card_that_differs(lab: SimpleNamespace) -> None:
    card = await asked(lab)
    other = await lab.ann.click(card, custom_id=custom_ids(card, "what_if")[0])
    assert not other.ephemeral and "17.2 GiB" in text(other.response)
    third = await lab.ann.click(other.response, custom_id=custom_ids(other.response, "what_if")[-1])
    assert text(third.response) not in (text(card), text(other.response))


async def test_a_step_that_is_applied_makes_a_new_card(with_a_step: None, lab: SimpleNamespace) -> None:
    card = await asked(lab)
    after = await lab.ann.click(card, custom_id=custom_ids(card, "apply")[0])
    assert not after.ephemeral and "Meta-Llama-3-8B · QLoRA" in text(after.response)


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
    await lab.env.restart_bot(made_bot(tmp_path / "new"))
    pressed = await lab.wei.click(card, custom_id=custom_ids(card, "math")[0])
    assert pressed.ephemeral and "重新提问" in text(pressed.response)
