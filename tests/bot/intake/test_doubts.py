"""What is not understood is told."""

import pytest

from bot.intake.doubts import Doubt, doubts_in
from bot.intake.understand import read_sheet


@pytest.mark.parametrize(
    ("text", "doubts"),
    [
        ("/vram model:7b foo:bar", [Doubt("option", "foo")]),
        ("/vram model:7b metod:lora", [Doubt("option", "metod", near=("method",))]),
        ("/vram model:7b batch_siz:4", [Doubt("option", "batch_siz", near=("batch",))]),
        ("/vram model:deepseek-r1:7b method:lora gpu:4090D", []),
        ("/vram model:7b quant:none offload:none method:lora rank:16", []),
        ("/vram model:gpt-4 method:lora", [Doubt("closed", "GPT-4")]),
        ("gpt-4 or llama-3.1-8b lora", []),
        ("model: 7b, note: thanks", []),
    ],
)
def test_doubts(text: str, doubts: list[Doubt]) -> None:
    assert doubts_in(read_sheet(text)) == doubts


def test_a_value_is_told_with_its_choices() -> None:
    (doubt,) = doubts_in(read_sheet("/vram model:7b method:foo"))
    assert (doubt.kind, doubt.name, doubt.value) == ("value", "method", "foo")
    assert "qlora" in doubt.near
