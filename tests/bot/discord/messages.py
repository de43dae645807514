"""Reading what the bot sent."""

from collections.abc import Iterator
from typing import Any


def parts(message: Any) -> Iterator[dict[str, Any]]:
    """Every component of a message, outer ones first."""
    components = message.components
    raw = [one if isinstance(one, dict) else one.to_dict() for one in components]
    yield from walked(raw)


def walked(components: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for component in components:
        yield component
        yield from walked(component.get("components") or [])


def text(message: Any) -> str:
    """Everything that can be read in a message."""
    return "\n".join([message.content, *(part["content"] for part in parts(message) if part.get("content"))]).strip()


def labels(message: Any) -> list[str]:
    """What stands on the buttons."""
    return [part["label"] for part in parts(message) if part.get("custom_id")]


def custom_ids(message: Any, kind: str = "") -> list[str]:
    """The ids of the buttons of a kind."""
    ids = [part["custom_id"] for part in parts(message) if part.get("custom_id")]
    return [one for one in ids if one.endswith(f":{kind}")] if kind else ids
