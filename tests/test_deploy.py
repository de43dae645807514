"""What an operator is given: checked for what holds without a container engine."""

import configparser
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.answers.card.fonts import CHINESE
from bot.discord.process import GRACE_SECONDS
from bot.settings import Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
SETTING = re.compile(r"^#?([A-Z_]+)=(.*)$")
FONTS = {"fonts-wqy-microhei": "WenQuanYi Micro Hei", "fonts-noto-cjk": "Noto Sans CJK SC"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, with their arguments on one line."""
    lines = (line for line in (DEPLOY / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#"))
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (name, " ".join(rest.split()))
        for name, _, rest in (line.partition(" ") for line in joined.splitlines())
        if name
    ]


def arguments(name: str) -> list[str]:
    return [rest for one, rest in instructions() if one == name]


def service() -> dict[str, Any]:
    """The only service of the compose file."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["bot"]
    return found


def example() -> dict[str, str]:
    """Settings of .env.example, those behind a "#" too."""
    lines = (DEPLOY / ".env.example").read_text("utf-8").splitlines()
    return {found[1]: found[2] for line in lines if (found := SETTING.match(line))}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "vram-bot.service", "utf-8")
    return parser


def test_the_example_names_every_setting() -> None:
    assert set(example()) == {name.upper() for name in Settings.model_fields}


def test_the_examples_values_can_be_used_and_defaults_are_the_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in example().items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    for name in ("keep_days", "workers", "drawers", "price_sources", "llm_when", "llm_seconds", "llm_tokens",
                 "llm_daily_tokens"):  # fmt: skip
        field = f"vram_bot_{name}"
        assert getattr(settings, field) == Settings.model_fields[field].default, field


def test_the_process_is_the_containers_first_and_not_root() -> None:
    (entry,), (command,), (user,) = arguments("ENTRYPOINT"), arguments("CMD")[-1:], arguments("USER")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert json.loads(entry) == list(scripts) and json.loads(command) == ["discord"], (
        "the list form: no shell before it"
    )
    assert user == "vram-bot" and "useradd --uid 10001 --user-group" in arguments("RUN")[-1]
    assert arguments("STOPSIGNAL") == ["SIGTERM"]


def test_what_is_copied_is_there_and_is_the_whole_package() -> None:
    copied = [words[:-1] for line in arguments("COPY") if not line.startswith("--from") if (words := line.split())]
    sources = {source for words in copied for source in words}
    assert all((ROOT / source).exists() for source in sources)
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == sources
    find = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]["find"]
    assert {one.rstrip("*") for one in find["include"]} <= sources


def test_the_image_has_a_font_that_pictures_know() -> None:
    installed = next(line for line in arguments("RUN") if "apt-get install" in line)
    assert any(font in installed and family in CHINESE for font, family in FONTS.items())


def test_data_lives_in_a_volume() -> None:
    assert arguments("VOLUME") == ["/data"]
    assert "VRAM_BOT_DATA=/data" in " ".join(arguments("ENV"))
    assert service()["volumes"] == ["data:/data"] and service()["read_only"] is True


def test_health_is_asked_where_it_is_served() -> None:
    (check,) = arguments("HEALTHCHECK")
    asked = json.loads(check.partition("CMD ")[2])
    assert ["CMD", *asked] == service()["healthcheck"]["test"]
    served = service()["environment"]["VRAM_BOT_HEALTH"]
    assert f"VRAM_BOT_HEALTH={served}" in " ".join(arguments("ENV")) and f"http://{served}/readyz" in asked[-1]


def test_every_way_of_running_gives_answers_their_time() -> None:
    assert int(service()["stop_grace_period"].rstrip("s")) > GRACE_SECONDS
    assert int(unit()["Service"]["TimeoutStopSec"]) > GRACE_SECONDS
    assert unit()["Service"]["KillSignal"] == service()["stop_signal"] == "SIGTERM"


def test_the_unit_starts_the_bot_and_not_again_when_a_setting_is_wrong() -> None:
    found = unit()["Service"]
    assert found["ExecStart"].endswith("/vram-bot discord") and found["User"] == "vram-bot"
    assert (found["Restart"], found["RestartPreventExitStatus"]) == ("on-failure", "2")
    guide = (DEPLOY / "README.md").read_text("utf-8")
    assert found["EnvironmentFile"] in guide and found["ExecStart"].partition("/.venv")[0] in guide
