"""Colour on a terminal, none in a pipe."""

import io

import pytest

from bot.cli.output import show
from bot.cli.paint import painted

ANSWER = "Qwen · LoRA\nFITS: peak 1.9 GiB\nWith the plain loss: 3.6 GiB, does not fit\nAssumed: length 1,024"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch) -> str:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    show(ANSWER)
    return terminal.getvalue()


def test_a_terminal_gets_colour_and_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    text = shown(monkeypatch)
    assert "\x1b[" in text
    assert painted(ANSWER).plain == ANSWER


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(monkeypatch) == ANSWER + "\n"


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    show(ANSWER)
    assert capsys.readouterr().out == ANSWER + "\n"


@pytest.mark.parametrize(
    ("words", "style"),
    [("FITS:", "bold green"), ("does not fit", "bold red"), ("1.9 GiB", "cyan"), ("Assumed:", "dim")],
)
def test_what_stands_out(words: str, style: str) -> None:
    text = painted(ANSWER)
    assert style in {str(span.style) for span in text.spans if words.strip() in ANSWER[span.start : span.end]}
