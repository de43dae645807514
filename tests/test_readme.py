"""Every example of the README and of the help is run, and prints what it is said to print."""

import re
import shlex
from pathlib import Path

import pytest
import resvg_py

from bot.intake.understand import understand
from bot.texts import texts
from tests.bot.cli.runner import run, typed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
TRANSCRIPTS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Every ``$ vram-bot …`` line of a console block with the output below it."""
    found = []
    for block in TRANSCRIPTS:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.strip()))
    return found


@pytest.mark.parametrize(("command", "output"), commands())
def test_an_example_prints_what_the_readme_says(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    *before, command = [part.strip() for part in command.split("|")]
    if before:
        words = shlex.split(before[0])
        assert words[0] == "echo"
        monkeypatch.setattr("sys.stdin", typed(" ".join(words[1:]) + "\n"))
    program, *arguments = shlex.split(command)
    assert program == "vram-bot"
    done = run(capsys, *arguments)
    assert done.status == 0, done.err
    assert matches(output, done.out.strip())


def matches(told: str, printed: str) -> bool:
    """Whether the output is as told, where an ellipsis stands for anything."""
    pattern = ".*".join(re.escape(part) for part in told.split("…"))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def test_there_are_examples() -> None:
    assert len(commands()) >= 4


def test_the_two_commands_are_one_line_each() -> None:
    lines = [line for line in README.splitlines() if line.startswith("python3 -m venv .venv && ")]
    assert len(lines) == 2
    assert lines[0].endswith("""vram-bot ask "/vram model:0.5b method:lora gpu:8GB\"""")
    assert lines[1].endswith(".venv/bin/pytest -q")


@pytest.mark.parametrize(
    "target", re.findall(r"\]\((?!https?:)([^)#]+)\)", README) + re.findall(r'src="(?!https?:)([^"]+)"', README)
)
def test_what_the_readme_links_to_exists(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("example", [one for lang in ("en", "zh") for one in texts(lang)["help"]["examples"]])
def test_an_example_of_the_help_is_answered(example: str) -> None:
    assert understand(example).reply == "answer"


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("deploy/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_leads_to_is_there_and_its_pictures_can_be_drawn(page: Path) -> None:
    text = page.read_text("utf-8")
    links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'src="([^"]+)"', text)
    for path in (page.parent / link for link in links if "://" not in link):
        assert path.exists(), path
        if path.suffix == ".svg":
            assert resvg_py.svg_to_bytes(svg_string=path.read_text("utf-8"))
