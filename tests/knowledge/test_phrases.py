"""How phrases are written and what they match."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.grammar import shared_words
from knowledge.phrases import Phrase, Text, phrase
from knowledge.reading import entries


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [
        ("cut off", "it was cut off here", "cut off"),
        ("cut off", "the cut-off length", "cut-off"),
        ("max seq len", "max_seq_len: 4096", "max_seq_len"),
        ("grow~", "memory grows", "grows"),
        ("mig", "migration", ""),
        ("(gpu|card) #", "on card 3", "card 3"),
        ("resum~ (the )?run", "resuming run", "resuming run"),
        ("resum~ (the )?run", "resume the run", "resume the run"),
        ("a * b", "a " + "x" * 60 + " b", ""),
        ("rank ?:?0", "rank 0", "rank 0"),
        ("rank:? 0", "rank: 0", "rank: 0"),
        ("states?", "state", "state"),
        ("states?", "statesman", ""),
        ("碎片", "显存碎片很多", "碎片"),
        ("{oom} * step", "爆显存 at step", "爆显存 at step"),
        ("({oom}|slow) here", "oom here", "oom here"),
        ("{oom} (in|在) step", "就爆了在step", "爆了在step"),
        ("# ?gb left", "only 12.5 gb left", "12.5 gb left"),
        ("(the )?(first|#) card", "on the first card", "the first card"),
        ("(the )?(first|#) card", "1 card", "1 card"),
        ("{vl} model", "an internvl model", "internvl model"),
    ],
)
def test_a_phrase_matches(written: str, text: str, found: str) -> None:
    assert phrase(written).found_in(Text(text)) == found


@pytest.mark.parametrize("written", ["softmax(", "a)", "(a", "{oom", "a}"])
def test_brackets_come_in_pairs(written: str) -> None:
    with pytest.raises(ValueError, match="brac"):
        phrase(written)


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(KeyError):
        phrase("{nothing} here")


PHRASES = [
    one
    for entry in entries().values()
    for one in (*entry.questions, *(said for signal in entry.evidence for said in (*signal.says, *signal.beside)))
] + [phrase(f"{{{name}}}") for name in shared_words() if name.startswith("t_")]
PLAIN = sorted({word for one in PHRASES for group in one.needed for word in group if "{" not in word})
TEXTS = st.lists(st.sampled_from([*PLAIN, "oom", "爆显存", "12 gb", "7b", "\n", "the", "x"]), max_size=12).map(" ".join)


@given(st.lists(st.sampled_from(PHRASES), max_size=40), TEXTS)
def test_a_phrase_is_found_just_where_its_pattern_matches(phrases: list[Phrase], written: str) -> None:
    text = Text(written)
    for one in phrases:
        plain = re.search(one.pattern, written)
        assert one.found_in(text) == (plain[0].strip()[:60] if plain else ""), one.text
