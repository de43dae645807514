"""What was not given, in a few words; the sources stand in the math."""

from bot.answers.card.voice import Voice
from bot.answers.describe import OURS, told_short
from bot.answers.quote import quoted
from estimator.schema import Assumption


def assumed_line(voice: Voice) -> list[str]:
    """The weighty values that every estimated run took without being told, on one line."""
    runs = [found.assumptions for found in voice.answer.estimates if found.per_gpu]
    shared = [one for one in runs[0] if all(one in others for others in runs)] if runs else []
    values = [_value(voice, one) for one in shared if one.field in OURS or told_short(one)]
    return [voice.say("assumed", values=voice.name("sign", "comma").join(values))] if values else []


def _value(voice: Voice, one: Assumption) -> str:
    name = voice.name("field", one.field)
    if isinstance(one.value, bool):
        return f"{name} {voice.say('on' if one.value else 'off')}"
    if one.field == "gradient_checkpointing":
        return f"{name} {voice.name('checkpointing', str(one.value))}"
    return f"{name} {one.value:,}" if isinstance(one.value, int) else f"{name} {quoted(one.value)}"
