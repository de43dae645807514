"""A call by name, from outside: arguments are checked, and whatever is wrong with them is one sentence."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bot.answer import Answer
from bot.problems import message_of, problem_of
from bot.texts import say
from bot.tools.shapes import TOOLS, Tool
from estimator.errors import EstimatorError
from estimator.schema import Run

LONGEST = 300


class WrongCall(Exception):
    """A tool or an argument that does not exist or cannot be used; the text says which and how to mend it."""


def called(name: str, arguments: Mapping[str, Any], lang: str) -> Answer:
    """The answer of a tool. Raises WrongCall."""
    tool = _tool(name, arguments, lang)
    try:
        answer = tool.answer(lang)
    except (EstimatorError, ValidationError) as error:
        raise WrongCall(message_of(problem_of(error), lang)) from None
    if answer.reply != "answer" or (answer.estimates and all(one.error for one in answer.estimates)):
        raise WrongCall(answer.text or say(lang, "tools.nothing_known"))
    return answer


def _tool(name: str, arguments: Mapping[str, Any], lang: str) -> Tool:
    if name not in TOOLS:
        raise WrongCall(say(lang, "tools.no_tool", names=", ".join(TOOLS)))
    try:
        return TOOLS[name].model_validate(dict(arguments))
    except ValidationError as error:
        raise WrongCall(_sentence(error, arguments, lang)) from None


def _sentence(error: ValidationError, arguments: Mapping[str, Any], lang: str) -> str:
    """The sentence that the command line has for a wrong run, pydantic's own for the rest."""
    runs = arguments.get("runs") if "run" not in arguments else [arguments["run"]]
    for run in runs if isinstance(runs, list) else []:
        try:
            Run.model_validate(run)
        except ValidationError as inner:
            return message_of(problem_of(inner), lang) if isinstance(run, dict) else _own(error)
    return _own(error)


def _own(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}".removeprefix(": ").replace("Value error, ", "")[:LONGEST]
