"""What a caller is told of a tool: its name, what it is for, and its arguments as a small JSON schema."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from bot.tools.shapes import TOOLS, Cost, EstimateRun
from estimator.schema import Run

MORE = "Takes every field of the tool estimate's run."


@cache
def run_fields() -> dict[str, dict[str, str]]:
    """What each field of Run means, by name: ``common`` ones, those about ``money``, ``rare`` ones."""
    return tomli.loads(Path(__file__).with_name("run_fields.toml").read_text("utf-8"))


def description_of(name: str) -> str:
    """What a tool is for."""
    return " ".join((TOOLS[name].__doc__ or "").split())


@cache
def schema_of(name: str) -> dict[str, Any]:
    """The arguments of a tool: what pydantic says, with Run's fields described and without what carries nothing.

    Only the tool ``estimate`` lists all of Run's fields: a language model is sent all tools with every question.
    """
    schema = TOOLS[name].model_json_schema()
    definitions = schema.get("$defs", {})
    if Run.__name__ in definitions:
        groups = {EstimateRun.name: ("common", "money", "rare"), Cost.name: ("common", "money")}.get(name, ("common",))
        definitions[Run.__name__] = _run_schema(definitions[Run.__name__], groups)
        schema["$defs"] = {one: definitions[one] for one in _needed(definitions, [Run.__name__])}
    found: dict[str, Any] = _slim(schema)
    found.pop("description", None)
    return found


def _run_schema(definition: dict[str, Any], groups: tuple[str, ...]) -> dict[str, Any]:
    """Run with the fields of some groups."""
    described = {field: text for group in groups for field, text in run_fields()[group].items()}
    properties = {
        field: {**spec, "description": described[field]}
        for field, spec in definition["properties"].items()
        if field in described
    }
    found = {**definition, "properties": properties}
    return found if "rare" in groups else {**found, "description": MORE, "additionalProperties": True}


def _needed(definitions: dict[str, Any], start: list[str]) -> list[str]:
    """Names of the definitions that are still referred to."""
    found: list[str] = []
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.append(name)
            waiting += [other for other in definitions if f'"#/$defs/{other}"' in json.dumps(definitions[name])]
    return found


def _slim(node: Any) -> Any:
    """Without titles, null alternatives and null defaults: absent and null mean the same."""
    if isinstance(node, list):
        return [_slim(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _slim(value) for key, value in node.items() if not _is_idle(key, value)}
    if "anyOf" not in kept:
        return kept
    options = [one for one in kept.pop("anyOf") if one != {"type": "null"}]
    return {**kept, "anyOf": options} if len(options) > 1 else {**kept, **options[0]}


def _is_idle(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
