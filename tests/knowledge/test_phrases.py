"""How phrases are written and what they match."""

import pytest

from knowledge.phrases import phrase


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
    ],
)
def test_a_phrase_matches(written: str, text: str, found: str) -> None:
    assert phrase(written).found_in(text) == found


@pytest.mark.parametrize("written", ["softmax(", "a)", "(a", "{oom", "a}"])
def test_brackets_come_in_pairs(written: str) -> None:
    with pytest.raises(ValueError, match="brac"):
        phrase(written)


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(KeyError):
        phrase("{nothing} here")
