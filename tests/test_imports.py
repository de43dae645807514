"""Which package may import which, and what a light command must not load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {"estimator": {"bot", "knowledge", "discord"}, "knowledge": {"bot", "discord"}}
SPEAKS_WITH_DISCORD = "bot/discord/"
LONGEST_FILE = 400


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_packages_import_only_what_they_may(package: str) -> None:
    assert sources(package)
    found = {
        (path.name, name)
        for path in sources(package)
        for name in imported(path)
        if name.split(".")[0] in FORBIDDEN[package]
    }
    assert not found


def test_discord_is_imported_only_where_it_is_spoken() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for package in ("bot", "estimator", "knowledge")
        for path in sources(package)
        if any(name.split(".")[0] == "discord" for name in imported(path))
    }
    assert users
    assert all(name.startswith(SPEAKS_WITH_DISCORD) for name in users)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import estimator.estimate", ("discord", "bot", "jinja2", "click", "rich")),
        ("import bot.service, bot.cli.ask", ("discord", "rich", "huggingface_hub", "sqlite_utils")),
        ("import bot.cli.discord", ("discord", "sqlite_utils")),
        ("import bot.cli.asking, bot.llm.checked", ("pydantic_ai", "pydantic_settings", "openai", "discord")),
        ("import bot.cli.mcp, bot.tools.calls", ("mcp", "pydantic_ai", "starlette", "discord", "rich")),
    ],
)
def test_an_import_does_not_drag_in(statement: str, absent: tuple[str, ...]) -> None:
    check = f"{statement}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_files_can_be_read_in_one_sitting() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for package in ("bot", "estimator", "knowledge")
        for path in sources(package)
        if (lines := len(path.read_text("utf-8").splitlines())) > LONGEST_FILE
    }
    assert not long, "a file is read in one sitting: split it"
