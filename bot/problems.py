"""What is wrong with an input, in one sentence that says how to mend it."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from bot.answers.quote import quoted
from bot.texts import name_of, say
from estimator.errors import EstimatorError
from estimator.schema import Problem, Run

RULES = {
    "greater_than_equal": ("≥", "ge"),
    "greater_than": (">", "gt"),
    "less_than_equal": ("≤", "le"),
    "less_than": ("<", "lt"),
}


def problem_of(error: ValidationError | EstimatorError) -> Problem:
    """The problem in both languages."""
    if isinstance(error, EstimatorError):
        return Problem(field=error.field, message=error.message, message_zh=error.message_zh)
    first = _most_telling(error)
    field = _path(first)
    return Problem(field=field, message=_sentence("en", first, field), message_zh=_sentence("zh", first, field))


def message_of(problem: Problem, lang: str) -> str:
    """The problem's sentence in a language."""
    return problem.message_zh if lang == "zh" and problem.message_zh else problem.message


def hint(lang: str, name: str, known: list[str]) -> str:
    """The nearest known names, as the end of a sentence; empty when none is near."""
    from rapidfuzz import fuzz, process  # only wrong input needs it

    near = [one for one, *_ in process.extract(name, known, scorer=fuzz.ratio, limit=1, score_cutoff=65)]
    return say(lang, "unknown.hint", names=", ".join(near)) if near else ""


def _most_telling(error: ValidationError) -> dict[str, Any]:
    """Unknown fields first, then the branch of a union that got furthest."""
    errors: list[dict[str, Any]] = error.errors(include_url=False, include_input=True)  # type: ignore[assignment]
    unknown = [one for one in errors if one["type"] == "extra_forbidden"]
    ranged = [one for one in errors if one["type"] in (*RULES, "too_short")]
    return (unknown or ranged or sorted(errors, key=lambda one: -len(one["loc"])))[0]


def _path(error: dict[str, Any]) -> str:
    """The dotted field, without the names of union branches."""
    names: list[str] = []
    model: type[BaseModel] | None = Run
    for part in error["loc"]:
        if model and part in model.model_fields:
            model = _group_in(model, str(part))
            names.append(str(part))
    if error["type"] == "extra_forbidden":
        names.append(str(error["loc"][-1]))
    return ".".join(names)


def _group_in(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a nested field; None for a plain one."""
    field = model.model_fields.get(name)
    branches = getattr(field.annotation, "__args__", ()) if field else ()
    return next((one for one in branches if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _sentence(lang: str, error: dict[str, Any], field: str) -> str:
    if error["type"] == "extra_forbidden":
        return say(
            lang, "cli.unknown_field", field=quoted(field), hint=hint(lang, field.split(".")[-1], _siblings(field))
        )
    if error["type"] == "missing":
        return (
            say(lang, "cli.no_model")
            if field == "model"
            else say(
                lang, "cli.bad_value", field=field, value=say(lang, "detail.empty"), detail=say(lang, "detail.required")
            )
        )
    value = quoted(error["input"], 40) or say(lang, "detail.empty")
    return say(lang, "cli.bad_value", field=quoted(field), value=value, detail=detail_of(lang, error))


def _siblings(field: str) -> list[str]:
    """The fields that exist where an unknown one was written."""
    model: type[BaseModel] = Run
    for part in field.split(".")[:-1]:
        model = _group_in(model, part) or model
    return list(model.model_fields)


def detail_of(lang: str, error: Mapping[str, Any]) -> str:
    """What a value that pydantic refused must be."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind in RULES:
        sign, key = RULES[kind]
        return say(lang, "detail.range", rule=f"{sign} {context[key]:,}")
    if kind == "literal_error":
        return say(lang, "detail.choice", choices=context["expected"].replace("'", "").replace(" or ", ", "))
    return say(lang, "detail.kind", kind=name_of(lang, "kind", kind.split("_")[0]))
