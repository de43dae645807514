"""What to type for a change of a run, per framework or engine (data/flags.toml)."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import tomli
from pydantic import BaseModel

from estimator.downgrades.figures import figures
from estimator.frameworks import canonical
from estimator.regimes import adapted
from estimator.schema import Run

WITH_METHOD = ("adapter.rank", "weight_format")
"""Fields that the switch for the method states too."""


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomli.loads(files("estimator").joinpath("data/flags.toml").read_text("utf-8"))


@cache
def _table(name: str) -> dict[str, Any] | None:
    """The flags of a framework with those it falls back to; None where nothing is known of it."""
    found = _tables().get(name)
    if found is None or "like" not in found:
        return found
    return {**(_table(found["like"]) or {}), **found}


def table_of(run: Run, framework: str | None = None) -> dict[str, Any] | None:
    """The flags that apply to a run: its framework's when it trains, else its engine's."""
    if framework is not None:
        return _table(canonical(framework))
    if run.task == "train" or run.framework == "ollama":
        return _table(run.framework or "transformers")
    return _table(run.engine or "hf")


def offered(run: Run, fields: tuple[str, ...]) -> bool:
    """Whether the run's framework can be told the values that ``fields`` (dotted) have in it.

    A training framework of which nothing is known has switches of its own for what all have; an engine has not.
    """
    known = table_of(run)
    if known is None:
        return run.task == "train"
    return all(_lines(known, name, _value(run, name), run) is not None for name in fields)


def commands(run: Run, change: Mapping[str, Any], framework: str | None = None) -> list[str]:
    """What to type so that a run becomes ``run``, which it is after ``change``; for another framework if one is named.

    Empty where nothing is known of the framework.
    """
    known = table_of(run, framework)
    if known is None:
        return []
    lines = [line for name, value in _told(change) for line in _lines(known, name, value, run) or ()]
    filled = figures(run) if lines else {}
    return list(dict.fromkeys(line.format_map(filled) for line in lines))


def commands_elsewhere(run: Run, change: Mapping[str, Any], framework: str) -> list[str]:
    """The same for another framework, empty where it lacks a switch for anything that the run's own one is told."""
    own, other = table_of(run) or {}, table_of(run, framework) or {}
    needed = [(name, value) for name, value in _told(change) if _lines(own, name, value, run)]
    missing = any(_lines(other, name, value, run) is None for name, value in needed)
    return [] if missing else commands(run, dict(change), framework)


def _told(change: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Dotted names and values of a change without those that another one's switch states too."""
    whole = dict(_leaves(change))
    skipped = {*(WITH_METHOD if "method" in change else ()), *(("parallel.engine",) if _offloads(whole) else ())}
    return [(name, value) for name, value in whole.items() if name not in skipped]


def _offloads(change: Mapping[str, Any]) -> bool:
    """Whether states or weights go to the host: its switch names the engine's file as well."""
    return any(change.get(f"offload.{name}") == "cpu" for name in ("optimizer", "parameters"))


def _lines(known: dict[str, Any], name: str, value: Any, run: Run) -> list[str] | None:
    if name == "offload.optimizer" and _by_fsdp(run):
        return []  # one switch for weights, gradients and states together
    found = next((known[key] for key in _keys(name, value, run) if key in known), None)
    return found if isinstance(found, list) else None


def _keys(name: str, value: Any, run: Run) -> list[str]:
    """Where the switch may stand in a table, the most special first."""
    told = str(value).lower() if isinstance(value, bool) else value
    on_base = run.task == "train" and adapted(run)
    stage = [f",{run.stage}"] if run.task == "train" and run.stage else []
    kinds = [*stage, *([",quantised"] if on_base and run.weight_format else []), *([",adapted"] if on_base else []), ""]
    if name.startswith("offload.") and _by_fsdp(run):
        return [f"{name}={told},fsdp{kind}" for kind in kinds]
    return [*(f"{name}={told}{kind}" for kind in kinds), *(f"{name}{kind}" for kind in (*stage, ""))]


def _by_fsdp(run: Run) -> bool:
    return run.parallel is not None and run.parallel.engine in ("fsdp1", "fsdp2")


def _value(run: Run, name: str) -> Any:
    value: Any = run
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _leaves(change: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted names and values; a whole new group counts field by field."""
    found: list[tuple[str, Any]] = []
    for name, value in change.items():
        inner = value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value
        if isinstance(inner, Mapping) and name not in ("model", "details", "seq_len"):
            found += _leaves(inner, f"{prefix}{name}.")
        elif value is not None:
            found.append((f"{prefix}{name}", value))
    return found
