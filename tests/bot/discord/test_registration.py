"""What is registered with Discord: within every limit, in both languages, and only when it changed."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import discord
import pytest
from simcord.env import Env

from bot.discord.client import VramBot
from bot.discord.places import NEEDED
from bot.settings import Settings
from tests.bot.discord.conftest import made_bot
from tests.standin.limits import check_commands
from tests.standin.openapi import Spec

SCHEMA = Path(__file__).parents[2] / "standin" / "schema" / "discord-openapi.json"
README = Path(__file__).parents[3] / "README.md"
MESSAGE_MENU = 3
COMMANDS = "/applications/1/commands"


@pytest.fixture
def registered(simcord_env: Env) -> list[dict[str, object]]:
    """The commands as they were sent."""
    (sent,) = [one for one in simcord_env.http_requests if one.method == "PUT"]
    return list(sent.json)


def test_commands_are_within_discords_limits(registered: list[dict[str, object]]) -> None:
    assert check_commands(json.loads(json.dumps(registered))) == []
    assert Spec(SCHEMA).check("PUT", COMMANDS, registered) == []


def test_every_name_and_description_is_there_in_chinese(registered: list[dict[str, object]]) -> None:
    for command in registered:
        if command["type"] == MESSAGE_MENU:
            assert not command["name_localizations"]["zh-CN"].isascii()  # type: ignore[index]
            continue
        for part in [command, *command.get("options", [])]:  # type: ignore[misc]
            assert not part["description_localizations"]["zh-CN"].isascii() or part["name"] == "optimizer", part
            assert part["name_localizations"]["zh-CN"]
            assert part["description"].isascii() and part["name"].isascii()


def test_all_can_be_used_in_servers_and_in_direct_messages(registered: list[dict[str, object]]) -> None:
    assert {str(one["name"]) for one in registered} == {
        "vram",
        "cost",
        "compare",
        "price",
        "digest",
        "help",
        "forget",
        "Why did this fail?",
    }
    for command in registered:
        if command["name"] != "digest":
            assert command["integration_types"] == [0, 1] and command["contexts"] == [0, 1, 2]


def test_the_digest_is_for_servers_and_who_manages_them(registered: list[dict[str, object]]) -> None:
    digest = next(one for one in registered if one["name"] == "digest")
    assert digest["contexts"] == [0]
    assert int(str(digest["default_member_permissions"])) == discord.Permissions(manage_guild=True).value


async def test_the_same_commands_are_not_registered_again(lab: SimpleNamespace, tmp_path: Path) -> None:
    await lab.env.restart_bot(made_bot(tmp_path))
    assert sum(one.method == "PUT" for one in lab.env.http_requests) == 1


def test_the_invitation_asks_for_what_is_needed() -> None:
    link = re.search(r"https://discord.com/oauth2/authorize\?(\S+)`", README.read_text("utf-8"))
    assert link and parse_qs(link[1]) == {
        "client_id": ["APPLICATION_ID"],
        "scope": ["bot applications.commands"],
        "permissions": [str(NEEDED.value)],
    }


def test_every_setting_is_told_in_the_readme() -> None:
    told = set(re.findall(r"`([A-Z_]{8,})`", README.read_text("utf-8")))
    assert {name.upper() for name in Settings.model_fields} <= told


async def test_that_registering_fails_stops_nothing(tmp_path: Path) -> None:
    env = Env(made_bot(tmp_path))
    env.inject_error("PUT", "/applications/*/commands", status=403)
    await env.start()
    assert isinstance(env.bot, VramBot)
    await env.shutdown()
