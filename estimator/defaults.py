"""Fills what a run leaves out from the named framework's defaults, and says where each value is from."""

from functools import lru_cache
from typing import Any, NamedTuple

from estimator.datafiles import read_toml
from estimator.schema import Adapter, Assumption, Preference, ReinforcementLearning, Run, Strict


class Rule(NamedTuple):
    """A default: ``field`` takes ``value`` where every condition of ``when`` holds; ``said`` is how it is reported.

    ``of`` are the frameworks whose own default it is, None where it does not depend on the framework.
    """

    field: str
    value: Any
    when: tuple[tuple[str, tuple[Any, ...]], ...]
    said: Assumption
    of: frozenset[str] | None = None


class Chosen(NamedTuple):
    """What the rules fill in: fields of the run, of its sections, and how they are reported."""

    run: dict[str, Any]
    sections: tuple[tuple[str, dict[str, Any]], ...]
    said: tuple[Assumption, ...]


class Facts(NamedTuple):
    """What the rules ask besides the run's own fields."""

    stored: str | None
    quantised: bool
    bf16_card: bool | None
    gguf: bool = False
    native: str | None = None


@lru_cache(maxsize=1)
def rules() -> dict[str, list[Rule]]:
    """All rules by field, in the order of the file."""
    table = read_toml("defaults.toml")
    by_field: dict[str, list[Rule]] = {}
    for row in table["rule"]:
        by_field.setdefault(row["field"], []).append(_rule(row, table["of"]))
    return by_field


def _rule(row: dict[str, Any], groups: dict[str, list[str]]) -> Rule:
    when = tuple(
        (key, tuple(value) if isinstance(value, list) else (value,)) for key, value in row.get("when", {}).items()
    )
    said = Assumption(field=row["field"], value=row["value"], why=row["why"], why_zh=row["why_zh"])
    of = row.get("of")
    names = groups[of] if isinstance(of, str) else of
    return Rule(row["field"], row["value"], when, said, frozenset(names) if names else None)


SECTIONS: dict[str, type[Strict]] = {"adapter": Adapter, "preference": Preference, "rl": ReinforcementLearning}
"""Fields of ``Run`` whose own fields have defaults, named ``section.field``."""


def filled(run: Run, facts: Facts) -> tuple[Run, list[Assumption]]:
    """``run`` with every default in place, and the assumptions made."""
    known = vars(run)
    state = tuple([known[name] if decides else known[name] is not None for name, decides in FIELDS])
    given = tuple([pair for name in SECTIONS if known[name] is not None for pair in _given(name, known[name])])
    chosen = _chosen(state, given, facts)
    update = dict(chosen.run)
    for name, fields in chosen.sections:
        update[name] = (known[name] or SECTIONS[name]()).model_copy(update=fields)
    return run.model_copy(update=update), list(chosen.said)


def _given(section: str, value: Strict) -> list[tuple[str, Any]]:
    """What is given of a section; conditions ask for the values of the words and switches of some."""
    decides = section != "adapter"
    return [
        (f"{section}.{name}", one if decides and isinstance(one, str | bool) else True)
        for name, one in vars(value).items()
        if one is not None
    ]


DECIDING = frozenset({"framework", "task", "stage", "method", "precision", "weight_format", "engine"})
"""Fields whose values the rules' conditions ask for; of the others only whether they are given matters."""


FIELDS = tuple((name, name in DECIDING) for name in Run.model_fields)


@lru_cache(maxsize=4096)
def _chosen(state: tuple[Any, ...], given: tuple[tuple[str, Any], ...], facts: Facts) -> Chosen:
    """What the rules say that apply to runs in this state; rules may build on the values of earlier ones."""
    values = {name: value for name, value in zip(Run.model_fields, state, strict=True) if value not in (None, False)}
    values |= given
    values["framework_given"] = "framework" in values
    chosen = []
    for name, choices in rules().items():
        rule = None if name in values else next((rule for rule in choices if _holds(rule, values, facts)), None)
        if rule is not None:
            values[name] = rule.value
            chosen.append(_for_framework(rule, values.get("framework")))
    own = {rule.field: rule.value for rule in chosen if "." not in rule.field}
    sections: dict[str, dict[str, Any]] = {}
    for rule in chosen:
        section, _, name = rule.field.partition(".")
        if name:
            sections.setdefault(section, {})[name] = rule.value
    return Chosen(own, tuple(sections.items()), tuple(rule.said for rule in chosen))


def _for_framework(rule: Rule, framework: str | None) -> Rule:
    """The rule, its reason saying so where the value is another framework's default."""
    if rule.of is None or framework is None or framework in rule.of:
        return rule
    said = rule.said
    own = Assumption(
        field=said.field,
        value=said.value,
        why=f"not stated by {framework}: {said.why}",
        why_zh=f"{framework} 未说明：{said.why_zh}",
    )
    return rule._replace(said=own)


def _holds(rule: Rule, values: dict[str, Any], facts: Facts) -> bool:
    return all(_fact(key, values, facts) in wanted for key, wanted in rule.when)


def _fact(key: str, values: dict[str, Any], facts: Facts) -> Any:
    if key == "quantised":
        return facts.quantised or "weight_format" in values
    if key == "precision_given":
        return "precision" in values  # where the rules of earlier fields ask: given by the run
    if key == "adapted":
        return values.get("task") == "train" and values.get("method") in ("lora", "dora", "qlora")
    if key == "wants_infer":
        return any(name in values for name in ("context_len", "new_tokens", "engine"))
    if key in ("stored", "bf16_card", "gguf", "native"):
        return getattr(facts, key)
    return values.get(key)
