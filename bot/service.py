"""The one door: a message or a run in, an Answer or an Estimate out."""

from typing import Any

from bot.answer import Answer, ReadingShown
from bot.answers.render import rendered
from bot.intake.runs import with_facts
from bot.intake.understand import Question, understand
from bot.language import language_of
from estimator.errors import EstimatorError
from estimator.estimate import estimate as estimate_run
from estimator.schema import Estimate, Problem, Run

NOT_OF_RUN = frozenset({"params_b", "memory_gb", "resolved_model", "hours"})


def ask(text: str, history: list[str] | None = None, lang: str | None = None) -> Answer:
    """The reply to a chat message, given the messages before it."""
    question = understand(text, history)
    answer = Answer(
        lang=language_of(text, lang),
        reply=question.reply,
        question=question.question,
        runs=question.runs,
        missing=question.missing,
        invalid=question.invalid,
        readings=_readings(question),
    )
    if answer.reply == "answer" and answer.question != "help":
        answer.estimates = [_estimate_or_problem(run) for run in question.runs]
    return rendered(answer, question.unknown)


def estimate(run: Run) -> Estimate:
    """What one run needs; raises EstimatorError when it cannot be said."""
    return estimate_run(run)


def told(fields: dict[str, Any], found: Estimate, lang: str, explain: bool = False) -> str:
    """The text for one estimate of a run that was given as ``fields``."""
    runs = [with_facts(fields)]
    answer = Answer(lang=lang, question="fit", runs=runs, estimates=[found])
    return rendered(answer, explain=explain).text


def _readings(question: Question) -> list[ReadingShown]:
    shown = (reading for reading in question.readings if reading.field != "hardware")
    return [ReadingShown(field=one.field, value=one.value, text=one.text, why=one.why) for one in shown]


def run_of(fields: dict[str, Any]) -> Run:
    """The run to estimate for fields that were understood."""
    known = {name: value for name, value in fields.items() if name not in NOT_OF_RUN}
    return Run.model_validate(known)


def _estimate_or_problem(fields: dict[str, Any]) -> Estimate:
    try:
        return estimate(run_of(fields))
    except EstimatorError as error:
        return Estimate(error=Problem(field=error.field, message=error.message, message_zh=error.message_zh))
