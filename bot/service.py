"""The one door: a message or a run in, an Answer or an Estimate out."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from pydantic import ValidationError

from bot.answer import Answer, FewestShown, ReadingShown, RentShown
from bot.answers.brief import briefly
from bot.answers.render import rendered
from bot.diagnosing.asked import KNOWN_KINDS, entries_for, is_picture, is_sure, told_of
from bot.intake.change import changed, uncounted
from bot.intake.names import card_named, model_named
from bot.intake.runs import SAME_CARD, is_bare_size, with_facts
from bot.intake.understand import Question, understand
from bot.language import language_of
from estimator.catalogue import find_gpu, find_model
from estimator.downgrades import applied
from estimator.errors import EstimatorError
from estimator.estimate import estimate as estimate_run
from estimator.schema import Estimate, Problem, Run
from estimator.smallest import smallest_card_gb
from knowledge.diagnosis import Diagnosis
from knowledge.logs.families import is_log

if TYPE_CHECKING:
    from bot.prices.claims import Claim
    from bot.reading.read import Reading
    from bot.tracing.gpu_check import Measured

Found = TypeVar("Found")
MONEY = ("time", "cost", "price", "need_gpu")
"""Questions to which time and cost belong."""
NOT_OF_RUN = frozenset({"params_b", "memory_gb", "resolved_model", "hours"})


def ask(text: str, history: list[str] | None = None, lang: str | None = None, before: Question | None = None) -> Answer:
    """The reply to a chat message, given the messages before it, or what was understood of them."""
    language = language_of(text, lang)
    if is_picture(text):
        return picture_declined(language)
    if is_log(text):
        return _diagnosis_of(text, language)
    question = understand(text, history, before)
    if question.reply == "answer" and question.question == "diagnose":
        return _diagnosis_of(text, language, question)
    if question.reply == "answer" and question.question == "explain" and question.failed:
        told = _diagnosis_of(text, language, question)
        if is_sure(told.diagnosis):
            return told.model_copy(update={"question": "explain"})
    if kind := told_of(text, question):
        told = _diagnosis_of(text, language)
        if is_sure(told.diagnosis):
            return told.model_copy(update={"question": kind})
    return answered(question, language, entries_for(text, question))


def why(text: str, lang: str) -> Answer:
    """The reply to the question why what a message tells of went wrong."""
    if is_picture(text):
        return picture_declined(lang)
    question = None if is_log(text) else understand(text)
    return _diagnosis_of(text, lang, question if question and question.reply == "answer" else None)


def picture_declined(lang: str) -> Answer:
    """The sentence for a screenshot: what is needed is the text."""
    return rendered(Answer(lang="zh" if lang == "zh" else "en", reply="refuse", question="diagnose"))


def answered(question: Question, lang: str, entries: Sequence[str] = ()) -> Answer:
    """The reply to a question that was understood, in a language, with what the entries say to it."""
    modelless = question.question in KNOWN_KINDS and not any(run.get("model") for run in question.spoken)
    if entries and (question.reply != "answer" or question.question == "help" or modelless):
        return _told_by_entries(question, lang, entries)
    if question.rents is not None:
        return _priced(question, lang)
    answer = Answer(
        lang="zh" if lang == "zh" else "en",
        reply=question.reply,
        question=question.question,
        runs=question.runs,
        spoken=question.spoken,
        missing=question.missing,
        invalid=question.invalid,
        unknown_family=question.unknown_family,
        readings=_readings(question),
        entries=list(entries),
        remarks=_remarks(question.paste, lang) if question.paste else [],
    )
    if answer.reply == "answer" and answer.question != "help":
        alone = len(question.runs) == 1
        answer.estimates = [_estimate_or_problem(run, question.question, answer.lang, alone) for run in question.runs]
        answer.smallest_card_gb = [smallest_card_gb(found) for found in answer.estimates]
        answer.rents = [_rent(found) for found in answer.estimates]
        answer.fewest = [_fewest(run) for run in question.runs] if question.question == "need_gpu" else []
        _ask_back(answer)
    return rendered(answer, question.doubts)


def _remarks(paste: "Reading", lang: str) -> list[str]:
    from bot.answers.reading import remarks  # most messages are only words

    return remarks(paste, lang)


def prices(
    gpus: Sequence[str], lang: str, region: str = "", spot: bool | None = None, currency: str = "",
    claim: "Claim | None" = None,
) -> Answer:  # fmt: skip
    """What cards cost: ranges by class, the cheapest, purchase prices, each with its day and source.

    Without cards, those that most ask about; ``claim``: what somebody says that they cost. Raises EstimatorError for an
    unknown card or currency.
    """
    from bot.prices.ask import answered_prices  # most questions are not about money

    found = answered_prices(gpus, lang, region, spot, currency, claim)
    return rendered(Answer(lang="zh" if lang == "zh" else "en", question="price", prices=found))


def of_runs(question: str, runs: Sequence[Run], lang: str) -> Answer:
    """The reply to a question of this kind about runs that are given field by field."""
    fields = [with_facts(run.model_dump(exclude_unset=True, exclude_none=True)) for run in runs]
    missing = [] if all(run.get("gpu") for run in fields) else ["gpu"]
    return answered(Question("answer", question, spoken=fields, runs=fields, missing=missing), lang)


def facts(kind: str, name: str, lang: str) -> Answer:
    """What the catalogue knows of a "model" or a "gpu". Raises EstimatorError for one that it does not know."""
    from bot.facts import known_card, known_model

    known = (known_model if kind == "model" else known_card)(name, lang == "zh")
    return rendered(Answer(lang="zh" if lang == "zh" else "en", question="explain", known=known))


def about_topic(text: str, lang: str) -> Answer:
    """The entry of the knowledge that is nearest to a text; its id counts too. "ignore" when none is near."""
    from knowledge.reading import entries
    from knowledge.search import answering

    near = answering(text)
    found = text if text in entries() else near.entry.id if near else ""
    if not found:
        return Answer(lang="zh" if lang == "zh" else "en", reply="ignore")
    return _told_by_entries(Question("answer", "explain"), lang, [found])


def _priced(question: Question, lang: str) -> Answer:
    """The reply to a question of what cards cost."""
    rents = question.rents or {}
    named = dict.fromkeys(str(run["gpu"]) for run in question.runs)
    try:
        answer = prices(
            list(named), lang, rents.get("region", ""), rents.get("spot"), rents.get("currency", ""), rents.get("claim")
        )
    except EstimatorError as error:
        problem = Problem(field=error.field, message=error.message, message_zh=error.message_zh)
        unknown = Answer(lang="zh" if lang == "zh" else "en", reply="clarify", question="price", runs=question.runs,
                         missing=["gpu"], estimates=[Estimate(error=problem)])  # fmt: skip
        return rendered(unknown)
    read = {"runs": question.runs, "spoken": question.spoken, "readings": _readings(question)}
    return answer.model_copy(update=read)


def _told_by_entries(question: Question, lang: str, entries: Sequence[str]) -> Answer:
    """The reply where entries answer, and no run is clear enough to be estimated."""
    kind = question.question if question.question in KNOWN_KINDS else "explain"
    answer = Answer(lang="zh" if lang == "zh" else "en", question=kind, runs=question.runs, entries=list(entries))
    return rendered(answer.model_copy(update={"spoken": question.spoken, "missing": question.missing}))


def again(question: str, fields: dict[str, Any], lang: str, change: Mapping[str, Any] | None = None) -> Answer:
    """The reply for one run of an earlier answer, with a partial run laid over it if one is given."""
    run = with_facts(_after(fields, change) if change else fields)
    return answered(Question("answer", question, spoken=[run], runs=[run]), lang)


def estimate(
    run: Run, others: bool = False, question: str = "fit", explain: bool = False, steps: bool = True
) -> Estimate:
    """What one run needs; a hub id that the catalogue lacks is fetched. Raises EstimatorError.

    Time and cost are laid beside it where ``question`` or the run asks for them. ``explain``: every phase's blocks;
    without ``steps`` nothing is proposed to a run that does not fit.
    """
    return _with_hub(run, lambda known: _with_costs(known, estimate_run(known, others, explain, steps), question))


def explained(answer: Answer) -> Answer:
    """The answer with the blocks of every phase."""
    again = [
        found if found.error or found.run is None else estimate(found.run, explain=True, steps=False)
        for found in answer.estimates
    ]
    pairs = zip(answer.estimates, again, strict=True)
    filled = [found.model_copy(update={"per_gpu": more.per_gpu}) for found, more in pairs]
    return answer.model_copy(update={"estimates": filled})


def trace(run: Run) -> Estimate:
    """The same, measured: the real step run on fake tensors. Needs the extra ``trace``. Raises EstimatorError."""
    from bot.tracing.trace import trace as trace_run  # torch comes with an extra

    return _with_hub(run, trace_run)


def measure(run: Run) -> "Measured":
    """The real step on this machine's own card. Needs the extra ``trace`` and a GPU. Raises EstimatorError."""
    from bot.tracing.gpu_check import measure as measure_run

    return _with_hub(run, measure_run)


def _with_hub(run: Run, work: Callable[[Run], Found]) -> Found:
    """The work on a run; once more with the config from the hub where the catalogue lacks the model."""
    try:
        return work(run)
    except EstimatorError as error:
        config = _config_on_hub(run.model) if error.field == "model" and _is_unknown(run.model) else None
        if config is None:
            raise
    return work(run.model_copy(update={"model": config}))


def cost_of(fields: dict[str, Any], lang: str = "en", question: str = "cost") -> Estimate:
    """Memory, time and cost of a run; without a card, the cards that hold it by cost; without a model, a card's prices.

    Raises EstimatorError, or pydantic's ValidationError for a field or a value that no run has.
    """
    from bot.costs.asking import spelled_out, without_model

    fields = spelled_out(question, fields, lang)
    return estimate(run_of(fields), others=True, question=question) if fields.get("model") else without_model(fields)


def _with_costs(run: Run, found: Estimate, question: str) -> Estimate:
    """The estimate with time and cost where they are asked for; whoever asks for memory alone loads nothing of it."""
    said = run.tokens or run.samples or run.economics is not None or run.price_usd_per_hour is not None
    if question not in MONEY and not said:
        return found
    from bot.costs.asking import beside

    return beside(question, run, found)


def _rent(found: Estimate) -> RentShown | None:
    if found.run is None or not found.run.gpu:
        return None
    from bot.costs.rents import rent_shown

    return rent_shown(found.run)


def _fewest(fields: dict[str, Any]) -> FewestShown | None:
    """How many of the card that a run names it needs, whatever number of them is named beside."""
    from estimator.fewest import fewest_or_none  # few questions ask for a count

    open_count = uncounted(fields)
    found = fewest_or_none(run_of(open_count)) if fields.get("gpu") and fields.get("model") else None
    if found is None:
        return None
    return FewestShown(
        gpu=find_gpu(str(fields["gpu"])).name, gpu_count=found.gpu_count, fits=found.run is not None,
        peak_bytes=found.peak, way=found.way, way_zh=found.way_zh,
    )  # fmt: skip


def diagnose(text: str, lang: str | None = None) -> Diagnosis:
    """Why the run of a pasted log, traceback or report failed, and what would help."""
    answer = _diagnosis_of(text, language_of(text, lang))
    found: Diagnosis = answer.diagnosis  # type: ignore[assignment]
    return found.model_copy(update={"text": answer.text})


def _diagnosis_of(text: str, lang: str, question: Question | None = None) -> Answer:
    """The answer to a wreck; the runs of a question that was understood stand in for those of the text."""
    from bot.diagnosing.diagnose import diagnosed  # most questions are not about a wreck

    runs = question.runs if question else []
    found, wreck = diagnosed(
        text, lang, lambda fields: estimate(run_of(fields), others=True, steps=False), runs[0] if runs else None
    )
    answer = Answer(
        lang="zh" if lang == "zh" else "en",
        question="diagnose",
        runs=[wreck.run, *runs[1:]] if wreck.run else [],
        spoken=question.spoken if question else [],
        missing=question.missing if question else [],
        diagnosis=found,
    )
    answer.estimates = [wreck.estimate] if wreck.estimate else []
    return briefly(answer)


def read(text: str) -> "Reading":
    """What a config file, launch line or serving command fixes of a run; nothing of it is executed or opened."""
    from bot.reading.read import read_paste

    return read_paste(text)


def told_reading(reading: "Reading", lang: str) -> str:
    """A reading as a person reads it."""
    from bot.answers.reading import reading_text

    return reading_text(reading, lang)


def told(fields: dict[str, Any], found: Estimate, lang: str, explain: bool = False, question: str = "fit") -> str:
    """The text for one estimate of a run that was given as ``fields``."""
    answer = Answer(
        lang=lang,
        question=question,
        runs=[with_facts(fields)],
        estimates=[found],
        smallest_card_gb=[smallest_card_gb(found)],
        rents=[_rent(found)],
    )
    return rendered(answer, explain=explain).text


def run_of(fields: dict[str, Any]) -> Run:
    """The run to estimate for fields that were understood.

    A size that no model has is told by the model nearest to it; memory that is said to be usable counts as the card's.
    """
    model = fields.get("model")
    if isinstance(model, str) and is_bare_size(model) and fields.get("resolved_model"):
        fields = {**fields, "model": model if model_named(model) else fields["resolved_model"]}
    run = Run.model_validate({name: value for name, value in fields.items() if name not in NOT_OF_RUN})
    stated: float | None = fields.get("memory_gb")
    card = card_named(run.gpu) if stated and isinstance(run.gpu, str) else None
    if stated and card and card.memory_gb and abs(card.memory_gb / stated - 1) > SAME_CARD:
        run.gpu = f"{run.gpu} {stated:g}GB"
    return run


def _after(fields: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The run after a change; every field is spelled out where one left to its default would not stay as it was."""
    brief = changed(fields, change)
    try:
        before = estimate(run_of(fields)).run
        exact = applied(before, change) if before else None
        if exact is None or _peak(run_of(brief)) == _peak(exact):
            return brief
    except (EstimatorError, ValidationError):
        return brief
    return exact.model_dump(exclude_none=True)


def _peak(run: Run) -> int | None:
    found = estimate(run)
    return found.per_gpu.allocated_peak if found.per_gpu else None


def _is_unknown(model: str | dict[str, Any]) -> TypeGuard[str]:
    """Whether the catalogue has no such model; one that it has but cannot count is not looked up elsewhere."""
    if not isinstance(model, str):
        return False
    try:
        find_model(model)
    except EstimatorError:
        return True
    return False


@lru_cache(maxsize=256)
def _config_on_hub(name: str) -> dict[str, Any] | None:
    """The config of a hub id that the catalogue lacks, None for other names; raises what to paste instead."""
    if name.count("/") != 1:
        return None
    from bot.folders import cache_folder
    from bot.hub import fetch_model, is_repo_id

    return fetch_model(name, cache_folder("hub")).config if is_repo_id(name) else None


def _readings(question: Question) -> list[ReadingShown]:
    shown = (reading for reading in question.readings if reading.field != "hardware")
    return [ReadingShown(field=one.field, value=one.value, text=one.text, why=one.why) for one in shown]


def _estimate_or_problem(fields: dict[str, Any], question: str, lang: str, others: bool) -> Estimate:
    """The estimate of one run; ``others``: with the other choices, which only an answer of one run tells."""
    try:
        if question not in MONEY:
            return estimate(run_of(fields), others=others)
        return cost_of(fields, lang, question)
    except EstimatorError as error:
        return Estimate(error=Problem(field=error.field, message=error.message, message_zh=error.message_zh))


def _ask_back(answer: Answer) -> None:
    """A model or a card that nobody knows is asked about; a run that cannot be estimated is told instead."""
    fields = {found.error.field if found.error else "" for found in answer.estimates}
    if fields in ({"model"}, {"gpu"}):
        answer.reply = "clarify"
        answer.missing = list(dict.fromkeys([*(str(name) for name in fields), *answer.missing]))
