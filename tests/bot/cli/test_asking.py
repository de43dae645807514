"""Questions on the terminal with a language model set."""

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra llm")

from bot.cli import asking
from tests.bot.cli.runner import run
from tests.bot.llm.endpoint import calls, endpoint, says
from tests.bot.llm.test_helper import LORA, UNSURE


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asking._made.clear()


def test_an_unsure_question_goes_to_the_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(calls("estimate", LORA), says("The peak is 16.0 GiB.")) as server:
        monkeypatch.setenv("VRAM_BOT_LLM", "openai:tiny")
        monkeypatch.setenv("VRAM_BOT_LLM_BASE_URL", server.address)
        done = run(capsys, "ask", UNSURE)
        assert "The peak is 16.0 GiB." in done.out and "FITS" in done.out and not done.status
        run(capsys, "ask", "llama3 8b lora 3090")
        assert len(server.requests) == 2
        asking._made.pop()[1].close()


@pytest.mark.parametrize(
    ("value", "said"), [("gpt", "VRAM_BOT_LLM"), ("bard:x", "VRAM_BOT_LLM"), ("openai:", "VRAM_BOT_LLM")]
)
def test_a_setting_that_cannot_be_used_is_named(
    value: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAM_BOT_LLM", value)
    done = run(capsys, "ask", UNSURE)
    assert done.status == 2 and said in done.err
