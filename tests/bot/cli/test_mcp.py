"""``vram-bot mcp``, and what is said where an extra is not installed."""

import sys

import pytest

from bot.cli import asking
from tests.bot.cli.runner import run


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "bot.tools.server", raising=False)
    done = run(capsys, "mcp")
    assert done.status == 2 and "pip install 'vram-bot[mcp]'" in done.err and not done.out


def test_a_model_without_the_extra_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asking._made.clear()
    monkeypatch.setitem(sys.modules, "pydantic_ai.exceptions", None)
    monkeypatch.setenv("VRAM_BOT_LLM", "ollama:qwen3")
    done = run(capsys, "ask", "which graphics card should a student buy?")
    assert done.status == 2 and "pip install 'vram-bot[llm]'" in done.err


def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "mcp", "--http", "--port", "99999").status == 2
