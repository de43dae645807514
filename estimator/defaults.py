"""Fills what a run leaves out from the named framework's defaults, and says where each value is from."""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from estimator.schema import Adapter, Assumption, Run

NUMBERS_OF_OURS = ("micro_batch", "seq_len", "adapter.rank", "context_len", "new_tokens")
"""Assumptions that a reader wants to see first."""


class Rule(NamedTuple):
    """A default: ``field`` takes ``value`` where every condition of ``when`` holds."""

    field: str
    value: Any
    when: tuple[tuple[str, tuple[Any, ...]], ...]
    why: str
    why_zh: str


class Facts(NamedTuple):
    """What the rules ask besides the run's own fields."""

    stored: str | None
    quantised: bool
    bf16_card: bool | None


@lru_cache(maxsize=1)
def rules() -> dict[str, list[Rule]]:
    """All rules by field, in the order of the file."""
    table = tomllib.loads(files("estimator").joinpath("data/defaults.toml").read_text(encoding="utf-8"))
    by_field: dict[str, list[Rule]] = {}
    for row in table["rule"]:
        when = tuple((key, tuple(value) if isinstance(value, list) else (value,)) for key, value in row.get("when", {}).items())
        rule = Rule(row["field"], row["value"], when, row["why"], row["why_zh"])
        by_field.setdefault(rule.field, []).append(rule)
    return by_field


def filled(run: Run, facts: Facts) -> tuple[Run, list[Assumption]]:
    """``run`` with every default in place, and the assumptions made."""
    values = {name: getattr(run, name) for name in Run.model_fields}
    adapter = run.adapter.model_dump() if run.adapter else {}
    state = _State(values, adapter, facts)
    assumptions = []
    for name, choices in rules().items():
        if state.value(name) is None:
            rule = next((rule for rule in choices if state.holds(rule)), None)
            if rule is not None:
                state.put(name, rule.value)
                assumptions.append(Assumption.model_construct(field=name, value=rule.value, why=rule.why, why_zh=rule.why_zh))
    if state.adapter:
        values["adapter"] = Adapter.model_construct(**{name: state.adapter.get(name) for name in Adapter.model_fields})
    return Run.model_construct(**values), assumptions


class _State:
    def __init__(self, values: dict[str, Any], adapter: dict[str, Any], facts: Facts) -> None:
        self.values = values
        self.adapter = adapter
        self.facts = facts

    def value(self, name: str) -> Any:
        if name.startswith("adapter."):
            return self.adapter.get(name[8:])
        return self.values[name]

    def put(self, name: str, value: Any) -> None:
        if name.startswith("adapter."):
            self.adapter[name[8:]] = value
        else:
            self.values[name] = value

    def holds(self, rule: Rule) -> bool:
        return all(self.fact(key) in wanted for key, wanted in rule.when)

    def fact(self, key: str) -> Any:
        if key == "quantised":
            return self.facts.quantised or self.values["weight_format"] is not None
        if key == "adapted":
            return self.values["task"] == "train" and self.values["method"] in ("lora", "dora", "qlora")
        if key == "wants_infer":
            return any(self.values[name] is not None for name in ("context_len", "new_tokens", "engine"))
        if key in ("stored", "bf16_card"):
            return getattr(self.facts, key)
        return self.values[key]
