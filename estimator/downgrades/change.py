"""Partial runs: laid over a run, and read off two runs."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from estimator.schema import Run

WHOLE = frozenset({"model", "seq_len"})
"""Fields that are replaced rather than merged, though they may hold objects."""
STATED = frozenset({"parallel"})
"""Groups whose fields only make sense together."""


def applied(run: Run, change: Mapping[str, Any]) -> Run:
    """``run`` with a partial run laid over it: groups are merged, null takes a field away.

    Raises pydantic's ``ValidationError`` for a field or a value that no run has.
    """
    return Run.model_validate(_merged(run.model_dump(exclude_none=True, exclude_unset=True), change))


def _merged(fields: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(fields)
    for name, value in change.items():
        known = merged.get(name)
        inner = isinstance(value, Mapping) and isinstance(known, dict) and name not in WHOLE
        merged[name] = _merged(known, value) if inner and isinstance(known, dict) else value
    return {name: value for name, value in merged.items() if value is not None}


def difference(before: Run, after: Run) -> dict[str, Any]:
    """The partial run that leads from one run to the other; null where a field is gone."""
    return {
        name: _inner(name, vars(before)[name], value)
        for name, value in vars(after).items()
        if value != vars(before)[name]
    }


def _inner(name: str, before: Any, after: Any) -> Any:
    if not isinstance(after, BaseModel):
        return after
    if name in WHOLE or not isinstance(before, BaseModel):
        return after.model_dump(exclude_defaults=True)
    stated = after.model_dump(exclude_defaults=True) if name in STATED else {}
    return stated | {key: value for key, value in after.model_dump().items() if value != getattr(before, key)}
