"""The fields of Run as flags: ``--micro_batch 2 --adapter.rank 16 --parallel.zero 3``."""

import json
import types
import typing
from collections.abc import Iterator
from typing import Any

import click
from pydantic import BaseModel

from estimator.schema import Run

STACK = ("torch", "transformers", "peft", "trl", "bitsandbytes", "flash-attn", "deepspeed", "vllm")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def flag_names(model: type[BaseModel] = Run, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field's dotted name and type, groups taken apart."""
    for name, field in model.model_fields.items():
        inner = next((one for one in _branches(field.annotation) if _is_model(one)), None)
        if name == "stack":
            yield from ((f"stack.{package}", str) for package in STACK)
        elif inner and name != "seq_len":
            yield from flag_names(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.annotation


def _branches(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, and what stands inside Annotated."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(branch for one in typing.get_args(annotation) for branch in _branches(one))
    if typing.get_origin(annotation) is typing.Annotated:
        return _branches(typing.get_args(annotation)[0])
    return (annotation,)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def options() -> list[click.Option]:
    """A flag for every field, dashes allowed for underscores."""
    return [_option(name) for name, _ in flag_names()]


def _option(name: str) -> click.Option:
    spellings = dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}"))
    return click.Option([*spellings, _destination(name)], metavar="VALUE")


def _destination(name: str) -> str:
    return "run_" + name.replace(".", "__").replace("-", "_")


def run_fields(values: dict[str, Any]) -> dict[str, Any]:
    """The nested fields of Run for the flags that were given."""
    fields: dict[str, Any] = {}
    for name, annotation in flag_names():
        given = values.get(_destination(name))
        if given is not None:
            _set(fields, name.split("."), value_of(given, annotation))
    return fields


def _set(fields: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        fields = fields.setdefault(part, {})
    fields[path[-1]] = value


def value_of(text: str, annotation: Any) -> Any:
    """A flag's text as a value: JSON for objects and lists, commas for lists, true/false where a switch is meant."""
    branches = _branches(annotation)
    if text[:1] in "{[":
        try:
            return json.loads(text)
        except ValueError:
            return text
    if bool in branches and text.lower() in WORDS:
        return WORDS[text.lower()]
    if "," in text and any(typing.get_origin(one) is list for one in branches):
        return [part.strip() for part in text.split(",") if part.strip()]
    return [text] if _only_list(branches) else text


def _only_list(branches: tuple[Any, ...]) -> bool:
    return any(typing.get_origin(one) is list for one in branches) and str not in branches
