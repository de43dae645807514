"""A wreck in, a Diagnosis out: read, estimated, ranked, and each fix with its new peak."""

from collections.abc import Callable
from typing import Any

from bot.diagnosing.gaps import gap_between
from bot.diagnosing.moves import MOVES, made
from bot.diagnosing.runs import known_of, run_in
from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.estimate import outcome_of, refilled
from estimator.schema import Estimate, Run, Verdict
from estimator.single import Single
from knowledge.case import facts_of
from knowledge.diagnosis import Cause, Diagnosis, Fix
from knowledge.facts import Facts
from knowledge.logs.reading import Log, read_log
from knowledge.ranking import Found, fitting, ranked
from knowledge.reading import FixText, useless_anyway
from knowledge.telling import filled

Estimator = Callable[[dict[str, Any]], Estimate]

COSTS = ("a flag", "slower", "changes the training", "more hardware")
MOST_FIXES = 4
WITH_FIXES = 3
"""Causes whose fixes are worked out."""
MATCH = 0.12
"""An estimate this near to what was in use is taken to be of the same run."""
ALIKE = 0.3
"""Weights are those of the run when they differ by less than this from what an engine prints."""
HALF_LOADED = 0.7
CLOSE = 0.95
"""A second cause this near to the first says what does not help, too."""
SURE = 1.6
"""The first cause is told alone when its evidence is this many times that of the second."""


class Wreck:
    """One text while it is being diagnosed: its log, run, estimate and facts."""

    def __init__(self, text: str, estimate: Estimator, run: dict[str, Any] | None = None) -> None:
        self.log: Log = read_log(text)
        self.run = run_in(self.log) if run is None else run
        self._estimator = estimate
        self._after: dict[str, tuple[int, Verdict | None] | None] = {}
        self.estimate = self._matched(self._peak(self.run) if _is_clear(self.run) else None)
        self.facts: Facts = facts_of(self.log, self.run, self.estimate, known_of(self.run))

    def _peak(self, run: dict[str, Any]) -> Estimate | None:
        try:
            found = self._estimator(run)
        except Exception:  # a run that cannot be estimated, for whatever reason, is diagnosed without
            return None
        return found if found.per_gpu else None

    def _matched(self, found: Estimate | None) -> Estimate | None:
        """The estimate, with what was assumed changed where that alone meets what the log shows in use.

        A run that held 23 GiB did not have gradient checkpointing, if with it 15 are needed and without it 23.
        """
        seen, printed = self.log.message.size("allocated"), self.log.message.size("weights")
        if found is None or found.per_gpu is None or found.run is None or not (seen or printed):
            return found
        weights = sum(block.bytes for block in found.per_gpu.at_peak if block.item == "weights")
        if printed and str(self.log.message.get("backend")) == "vllm" and abs(weights - printed) > ALIKE * printed:
            return None  # the engine says how large the weights of a card are
        if not seen:
            return found
        needed = seen + (self.log.message.size("tried") or 0)
        if needed < HALF_LOADED * weights and self.log.phase != "load":
            return None  # a step that ran had all weights loaded: it is another run than the words say
        peak = found.per_gpu.allocated_peak
        other = min(found.alternatives, key=lambda one: abs(one.allocated_peak - needed), default=None)
        if other is None or abs(peak - needed) <= MATCH * needed or abs(other.allocated_peak - needed) > MATCH * needed:
            return found
        self.run = {**self.run, **other.change}
        return self._peak(self.run) or found

    @property
    def peak(self) -> int | None:
        """The allocated peak of the run that failed, in bytes."""
        return self.estimate.per_gpu.allocated_peak if self.estimate and self.estimate.per_gpu else None

    def made(self, name: str) -> Single | None:
        """A move of the estimator made in the run that failed; None where it does not apply."""
        before = self.estimate.run if self.estimate else None
        try:
            return made(name, before) if before else None
        except EstimatorError:
            return None

    def after(self, name: str, made: Single) -> tuple[int, Verdict | None] | None:
        """The allocated peak of the run after a move, and whether it fits; worked out once for all causes."""
        if name not in self._after:
            self._after[name] = self._outcome(made.run)
        return self._after[name]

    def _outcome(self, run: Run) -> tuple[int, Verdict | None] | None:
        if self.estimate and self.estimate.serving is None:  # without what only a whole estimate says
            return training_outcome(run)
        found = self._peak(run.model_dump(exclude_none=True))
        return (found.per_gpu.allocated_peak, found.fit.verdict) if found and found.per_gpu else None

    def has(self, name: str) -> bool:
        """Whether the text says that the run is already as a move would make it, or the move is of another task."""
        run, move = self.estimate.run if self.estimate else None, MOVES[name]
        return run is not None and (move.field in self.run or move.of_training != (run.task == "train"))


def training_outcome(run: Run) -> tuple[int, Verdict | None] | None:
    """The allocated peak of a run that no engine serves, and whether it fits; None where it cannot be estimated."""
    try:
        model = find_model(run.model)
        found = outcome_of(refilled(run, model), model)
    except EstimatorError:
        return None
    return (found.allocated, found.verdict) if found else None


def _is_clear(run: dict[str, Any]) -> bool:
    """Whether it is said what is done with which model."""
    return bool(run.get("model") and run.get("task") and (run["task"] != "train" or run.get("method")))


def diagnosed(text: str, lang: str, estimate: Estimator, run: dict[str, Any] | None = None) -> tuple[Diagnosis, Wreck]:
    """The diagnosis, its text still empty; ``run`` is the run where it is known already."""
    wreck = Wreck(text, estimate, run)
    found = ranked(wreck.log.text, wreck.facts)
    result = Diagnosis(
        lang=lang,
        phase=wreck.log.phase,
        message=wreck.log.message,
        derived=wreck.log.derived,
        run=wreck.run or None,
        causes=[_cause(one, wreck, lang, number < WITH_FIXES) for number, one in enumerate(found)],
        gap=gap_between(wreck.facts, wreck.estimate),
        useless=_useless(found, wreck, lang),
        questions=_questions(found, lang),
    )
    return result, wreck


def _cause(found: Found, wreck: Wreck, lang: str, with_fixes: bool) -> Cause:
    fixes: list[FixText] = fitting(found.entry.fixes, wreck.log.text, wreck.facts) if with_fixes else []
    worked_out = [one for fix in fixes if (one := _fix(fix, wreck, lang))]
    return Cause(id=found.entry.id, score=found.score, evidence=list(found.evidence[:6]), fixes=worked_out[:MOST_FIXES])


def _fix(text: FixText, wreck: Wreck, lang: str) -> Fix | None:
    """The fix with the new peak where it can be estimated; None where the run has it already, or it saves nothing."""
    fix = Fix(id=text.id, title=filled(text.in_(lang), wreck.facts), cost=COSTS[text.cost])
    if not text.move or wreck.peak is None:
        return fix
    move = wreck.made(text.move)
    if move is None:
        return None if wreck.has(text.move) else fix
    after = wreck.after(text.move, move)
    if after is None:
        return fix
    peak, verdict = after
    if peak >= wreck.peak:  # an engine fills its share with whatever is saved elsewhere
        return fix if wreck.estimate and wreck.estimate.serving else None
    worked_out = {"change": move.change, "allocated_peak": peak, "saves": wreck.peak - peak,
                  "verdict": verdict, "commands": move.commands}  # fmt: skip
    return fix.model_copy(update=worked_out)


def _useless(found: list[Found], wreck: Wreck, lang: str) -> list[str]:
    """What will not help, from the causes that are likely."""
    likely = [one for one in found[:2] if one.score >= CLOSE * found[0].score]
    told = [*(one.entry.useless for one in likely), useless_anyway()]
    texts = [text for one in told for text in fitting(one, wreck.log.text, wreck.facts)]
    return list(dict.fromkeys(filled(text.in_(lang), wreck.facts) for text in texts))


def _questions(found: list[Found], lang: str) -> list[str]:
    """The one fact that decides, unless the evidence already does."""
    if not found:
        return []
    first, second = found[0].score, found[1].score if len(found) > 1 else 0.0
    ask = found[0].entry.body(lang).ask
    return [] if not ask or (first > 0.6 and first > SURE * second) else [ask]
