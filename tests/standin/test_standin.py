"""The stand-in says no where Discord does: a check that finds nothing wrong would prove nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.standin.limits import check_choices, check_commands, check_message, pings
from tests.standin.openapi import Spec

SCHEMA = Path(__file__).parent / "schema" / "discord-openapi.json"
V2 = 1 << 15
DISPLAY = {"type": 10, "content": "x"}
BUTTON = {"type": 2, "style": 1, "label": "x", "custom_id": "a"}


def row(*buttons: dict[str, Any]) -> dict[str, Any]:
    return {"type": 1, "components": list(buttons)}


@pytest.fixture(scope="module")
def spec() -> Spec:
    return Spec(SCHEMA)


@pytest.mark.parametrize(
    "body",
    [
        {"content": "x" * 2001},
        {"content": ""},
        {"embeds": [{"title": "x" * 257}]},
        {"embeds": [{"description": "x" * 4000}, {"description": "x" * 2001}]},
        {"embeds": [{"fields": [{"name": "a", "value": ""}]}]},
        {"flags": V2, "content": "x", "components": [DISPLAY]},
        {"flags": V2, "components": [{"type": 10, "content": "x" * 2001}] * 2},
        {"flags": V2, "components": [DISPLAY] * 41},
        {"flags": V2, "components": [row(BUTTON), row(BUTTON)]},
        {"flags": V2, "components": [row({**BUTTON, "label": "x" * 81})]},
        {"flags": V2, "components": [row({**BUTTON, "custom_id": "x" * 101})]},
        {"flags": V2, "components": [{"type": 12, "items": [{"media": {"url": "attachment://gone.png"}}]}]},
    ],
)
def test_messages_over_a_limit_are_refused(body: dict[str, Any]) -> None:
    assert check_message(body, []) != []


def test_a_message_within_the_limits_is_taken(spec: Spec) -> None:
    body = {"flags": V2, "components": [{"type": 10, "content": "x" * 4000}, row(BUTTON)]}
    assert check_message(body, []) == [] and spec.check("POST", "/channels/1/messages", body) == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/channels/1/messages", {"content": 5}),
        ("POST", "/channels/1/messages", {"content": "x", "colour": 1}),
        ("POST", "/channels/1/messages", {"components": [row({**BUTTON, "style": 9})]}),
        ("POST", "/channels/1/messages", {"components": [row(*[BUTTON] * 6)]}),
        ("POST", "/interactions/1/t/callback", {"type": 5, "data": {"flags": "private"}}),
        ("POST", "/interactions/1/t/callback", {"type": 8, "data": {"choices": [{"name": "x"}]}}),
        ("PUT", "/applications/1/commands", [{"name": "x", "description": "y" * 101}]),
        ("POST", "/webhooks/1/t", {"allowed_mentions": {"parse": ["nobody"]}}),
        ("POST", "/no/such/path", {}),
    ],
)
def test_bodies_that_discord_does_not_know_are_reported(spec: Spec, method: str, path: str, body: Any) -> None:
    assert spec.check(method, path, body) != []


def test_choices_and_commands_over_a_limit_are_refused() -> None:
    assert check_choices([{"name": str(number), "value": "x"} for number in range(26)]) != []
    assert check_choices([{"name": "x" * 101, "value": "x"}]) != []
    assert check_commands([{"name": "Upper", "description": "x"}]) != []
    assert check_commands([{"name": "x", "description": ""}]) != []
    long = {"name": "x", "description": "x", "description_localizations": {"zh-CN": "长" * 8001}}
    assert check_commands([long]) != []


def test_who_would_be_pinged() -> None:
    text = "@everyone <@1> <@&2>"
    assert pings(text, None) == {"@everyone", "user:1", "role:2"}
    assert pings(text, {"parse": []}, reply_author="3") == set()
    assert pings(text, {"parse": [], "replied_user": True}, reply_author="3") == {"user:3"}
