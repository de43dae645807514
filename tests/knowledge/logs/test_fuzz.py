"""Broken logs never raise."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bot import service
from knowledge.logs.families import is_log
from knowledge.logs.reading import read_log
from tests.knowledge.logs.test_messages import MESSAGES

TEXTS = [text for text, _, _ in MESSAGES.values()]
JUNK = "\x00\x1b[31m\r\n\t9.9.9 GiB ((((( {{{ }}} " + "9" * 50 + " GiB <@1> @everyone ../../etc 显存\ud800"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=2000))
def test_any_text_is_read(text: str) -> None:
    read_log(text)
    is_log(text)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(TEXTS))
def test_a_mangled_message_is_diagnosed(source: random.Random, text: str) -> None:
    found = service.diagnose(mangled(source, text))
    assert found.text
    assert len(found.text) <= 1800


def mangled(source: random.Random, text: str) -> str:
    """The text with pieces cut out, repeated, swapped and filled with junk."""
    for _ in range(source.randint(1, 6)):
        at, end = sorted(source.randint(0, len(text)) for _ in range(2))
        kind = source.randint(0, 3)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + JUNK[: source.randint(0, len(JUNK))] + text[at:]
        elif kind == 2:
            text = text + "\n" + text[at:end]
        else:
            text = text[end:] + text[:at]
    return text
