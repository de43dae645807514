"""What a language model may write beside an answer."""

import re

import pytest

from bot import service
from bot.answer import Answer
from bot.llm.checked import fault_of

FITS = service.ask("llama3 8b lora 3090")
TOO_BIG = service.ask("llama3 8b full fine-tune 3090")
ON_CARD = re.findall(r"([\d.]+)-([\d.]+) GiB on the card", TOO_BIG.text)[0]
ZH = service.ask("llama3 8b lora 3090 放得下吗")


@pytest.mark.parametrize(
    ("prose", "answer"),
    [
        ("Yes: the peak is 16.0 GiB, of 23.7 GiB usable on an RTX 3090.", FITS),
        ("The peak is 16 GiB.", FITS),
        ("The weights are what counts here.", FITS),
        ("It has 8,030,261,248 parameters, or 8030261248.", FITS),
        ("It does not fit; what would help comes below.", TOO_BIG),
        ("It does not fit as it is, but with LoRA it fits.", TOO_BIG),
        (f"On the card it takes between {ON_CARD[0]} GiB and {ON_CARD[1]} GiB.", TOO_BIG),
        ("峰值为 16.0 GiB，放得下。", ZH),
    ],
)
def test_sentences_that_repeat_the_answer_stand(prose: str, answer: Answer) -> None:
    assert fault_of(prose, answer) == ""


@pytest.mark.parametrize(
    ("prose", "answer", "fault"),
    [
        ("The peak is 17 GiB.", FITS, "number"),
        ("The peak is 16.0 GB.", FITS, "number"),
        ("The peak is 16.0GB.", FITS, "number"),
        ("About 16.0 gigabytes.", FITS, "number"),
        ("It needs sixteen or twenty GiB.", FITS, "number"),
        ("That is half of the card.", FITS, "number"),
        ("A run twice as long would do.", FITS, "number"),
        ("Use １７ GiB.", FITS, "number"),
        ("Use ١٧ GiB.", FITS, "number"),
        ("It is 8 x 8 GiB.", FITS, "number"),
        ("It is 10^3 B.", FITS, "number"),
        ("That is 68 % of it.", FITS, "number"),
        ("It costs $16.0 an hour.", FITS, "number"),
        ("Between 16.0-17.9 GiB.", FITS, "number"),
        ("峰值约为十七 GiB。", ZH, "number"),
        ("只占一半显存。", ZH, "number"),
        ("It does not fit.", FITS, "verdict"),
        ("The card is too small.", FITS, "verdict"),
        ("显存不够。", ZH, "verdict"),
        ("See https://example.com for more.", FITS, "link"),
        ("See example.com for more.", FITS, "link"),
        ("Hello @everyone.", FITS, "link"),
        ("Run `rm -rf /`.", FITS, "link"),
        ("放得下。", FITS, "language"),
        ("It fits.", ZH, "language"),
        ("It fits. " * 100, FITS, "long"),
    ],
)
def test_what_is_the_models_own_does_not(prose: str, answer: Answer, fault: str) -> None:
    assert fault in fault_of(prose, answer)


def test_nothing_fits_where_no_card_was_named() -> None:
    assert "verdict" in fault_of("It fits.", service.ask("llama3 8b lora, how much vram?"))
