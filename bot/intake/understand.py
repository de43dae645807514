"""The one way from a message (and what was said before it) to a question with its runs."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from bot.intake.amounts import read_amounts
from bot.intake.asked import AMOUNTS, Asked, asked_in, is_ours, read_questions
from bot.intake.caches import read_caches, read_in_and_out
from bot.intake.claims import claim_in
from bot.intake.counts import read_count_alone, read_other_counts
from bot.intake.doubts import Doubt, doubts_in
from bot.intake.economics import read_economics, read_token_amounts
from bot.intake.fields import (
    read_bare_lengths,
    read_bits_of_optimizer,
    read_bits_per_weight,
    read_closed,
    read_fields,
    read_full_beside_adapters,
    read_limits,
    read_other_memory,
    read_parallel_sizes,
    read_sequence_parallel,
    read_switches,
    read_tools,
)
from bot.intake.hardware import read_hardware
from bot.intake.keyed import read_keyed_numbers
from bot.intake.models import read_models, read_shy_models
from bot.intake.options import read_refusals, read_unknown_names
from bot.intake.pasted import pasted, run_of_paste, words_of
from bot.intake.relative import multiplied, read_factors
from bot.intake.rents import claimed_rents, rents_in
from bot.intake.runs import Fields, spoken_runs, with_facts, with_open_readings
from bot.intake.settled import settled
from bot.intake.sheet import Reading as SheetReading
from bot.intake.sheet import Sheet
from bot.intake.stages import read_image_sizes
from bot.intake.stand_ins import with_stand_ins
from bot.intake.together import join_parts
from bot.intake.tokens import clean
from bot.intake.typos import read_typos
from bot.intake.versions import read_versions

if TYPE_CHECKING:
    from bot.reading.read import Reading

MOST_HISTORY = 10
MOST_WORDS = 2000
"""Characters around a config that are read."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was understood: ``spoken`` is what the words say, ``runs`` adds each sensible reading of what is open.

    ``rents``: it is asked what cards cost; region, kind and currency, and what is said that they cost. ``paste``: the
    config or command that the run was read from. ``failed``: a run is said to have gone out of memory. ``cued``: words
    say what is asked; without any it is taken from what is named.
    """

    reply: str
    question: str
    spoken: list[Fields] = field(default_factory=list)
    runs: list[Fields] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    unknown_family: str = ""
    readings: list[SheetReading] = field(default_factory=list)
    rents: Fields | None = None
    paste: "Reading | None" = None
    failed: bool = False
    cued: bool = True


def understand(text: str, history: list[str] | None = None, before: Question | None = None) -> Question:
    """Read the messages of a conversation, oldest first, each over what the one before it left.

    ``before`` is what messages left that are not in ``history``.
    """
    previous = before
    for earlier in (history or [])[-MOST_HISTORY:]:
        read = _understand_one(earlier, previous)
        previous = read if read.spoken else previous
    return _understand_one(text, previous)


def read_sheet(text: str) -> Sheet:
    """All fields of one message, the surest kinds of reading first."""
    sheet = Sheet.of(text)
    read_refusals(sheet)
    read_versions(sheet)
    read_factors(sheet)
    read_token_amounts(sheet)
    read_economics(sheet)
    read_in_and_out(sheet)
    read_caches(sheet)
    read_sequence_parallel(sheet)
    read_keyed_numbers(sheet)
    read_amounts(sheet)
    read_image_sizes(sheet)
    read_parallel_sizes(sheet)
    read_other_memory(sheet)
    read_bits_per_weight(sheet)
    read_bits_of_optimizer(sheet)
    read_tools(sheet)
    read_closed(sheet)
    read_models(sheet)
    read_questions(sheet)
    read_fields(sheet, ("parallelism",))  # the 3 of "zero3 A100" counts no cards
    read_hardware(sheet)
    read_other_counts(sheet)
    join_parts(sheet)
    read_count_alone(sheet)
    read_fields(sheet)
    read_full_beside_adapters(sheet)
    read_switches(sheet)
    read_limits(sheet)
    read_typos(sheet)
    read_shy_models(sheet)
    read_bare_lengths(sheet)
    read_unknown_names(sheet)
    return sheet


@lru_cache(maxsize=2)
def words_around(text: str) -> Sheet:
    """The words around a config or command, read once for what they name and for what they ask."""
    return read_sheet(text[:MOST_WORDS])


def _understand_one(text: str, previous: Question | None) -> Question:
    paste = pasted(text)
    if paste is not None:
        return _of_paste(paste, words_of(paste, text), previous)
    claimed = _claimed(text)
    if claimed is not None:
        return claimed
    sheet = read_sheet(text)
    asked = asked_in(sheet)
    if asked.elsewhere and not sheet.values("model"):
        return Question("refuse", "other")
    if asked.question == "help" and not sheet.values("model"):
        return Question("answer", "help")
    rents = None if sheet.invalid or "own" in sheet.questions else rents_in(sheet, asked)
    if rents is not None:
        return _of_rents(sheet, rents)
    if not is_ours(sheet, asked, previous is not None):
        return Question("ignore", "other")
    spoken = [multiplied(run, sheet.values("factor")) for run in _merged(spoken_runs(sheet), previous, asked)]
    return _question(sheet, asked, [settled(run, asked.domain) for run in spoken], previous)


def _claimed(text: str) -> Question | None:
    """The question of a message that says what a card costs, and whether that is so."""
    said = claim_in(clean(text))
    if said is None or claim_in(said[1]) is not None:
        return None
    sheet = read_sheet(said[1])
    rents = claimed_rents(sheet, asked_in(sheet), said[0])
    question = _of_rents(sheet, rents) if rents is not None else None
    return question if question and (question.spoken or not sheet.values("hardware")) else None


def _of_rents(sheet: Sheet, rents: Fields) -> Question:
    """The question what cards cost."""
    spoken = [run for run in spoken_runs(sheet) if run.get("gpu")]
    known = [with_facts(run) for run in spoken]
    return Question("answer", "price", spoken, known, readings=sheet.readings, rents=rents)


NAMED_BESIDE = ("model", "gpu", "memory_gb", "gpu_count", "nodes", "host_ram_gib")
"""What the words beside a config may say, where that leaves it open."""


def _of_paste(paste: "Reading", words: str, previous: Question | None) -> Question:
    """The question about a config or command: what the words around it ask, else whether it fits."""
    if paste.error:
        return Question("clarify", "other", paste=paste)
    before = previous.spoken[0] if previous and previous.spoken else None
    run = run_of_paste(paste, before)
    asked = asked_in(words_around(words)).question if words else None
    if words and not (run.get("model") and run.get("gpu")):
        run = {**_named_beside(words_around(words)), **run}
    question = asked or ("fit" if run.get("gpu") else "need_memory")
    missing = [name for name in ("model", "gpu") if not run.get(name)]
    runs, open_ones = with_open_readings([run]) if run.get("model") else ([run], [])
    reply = "answer" if run.get("model") else "clarify"
    return Question(reply, question, [run], [with_facts(one) for one in runs], [*open_ones, *missing], paste=paste)


def _named_beside(sheet: Sheet) -> Fields:
    """Model, cards and memory that the words beside a config name, where they name one of each."""
    spoken = spoken_runs(sheet)
    return {name: spoken[0][name] for name in NAMED_BESIDE if len(spoken) == 1 and name in spoken[0]}


def _question(sheet: Sheet, asked: Asked, spoken: list[Fields], previous: Question | None) -> Question:
    question = asked.question or _usual_question(spoken, previous)
    alone = _is_of_cards_alone(question, spoken)
    lacking = [name for name in ("gpu",) if not all(run.get(name) for run in spoken)]
    lacking = lacking if alone else [*([] if all(run.get("model") for run in spoken) else ["model"]), *lacking]
    runs, missing = (
        (spoken, []) if alone else with_open_readings(with_stand_ins(spoken, question, _is_of_running(sheet)))
    )
    missing += lacking
    if _lacks_amount(question, spoken):
        missing.append("samples")
    doubts = doubts_in(sheet)
    without = not all(run.get("gpu") for run in runs) if alone else not all(run.get("model") for run in runs)
    stuck = sheet.invalid or doubts or "samples" in missing or without
    return Question(
        reply="clarify" if stuck else "answer",
        question=question,
        spoken=spoken,
        runs=[with_facts(run) for run in (spoken if stuck else runs)],
        missing=missing,
        invalid=list(dict.fromkeys(sheet.invalid)),
        doubts=doubts,
        unknown_family=next(iter(sheet.values("family")), ""),
        readings=sheet.readings,
        failed="diagnose" in sheet.questions,
        cued=asked.question is not None,
    )


def _is_of_cards_alone(question: str, spoken: list[Fields]) -> bool:
    """Whether prices of cards are asked for, or owning against renting, and no model is named."""
    of_money = question == "price" or (question == "cost" and all(_is_settled(run) for run in spoken))
    return of_money and not any(run.get("model") for run in spoken)


def _is_settled(run: Fields) -> bool:
    """Whether hours, or owning against renting, take the place of an amount of data."""
    return bool(run.get("hours") or (run.get("economics") or {}).get("rent_or_buy"))


def _lacks_amount(question: str, spoken: list[Fields]) -> bool:
    """Whether time or cost of a training is asked without how much there is to train on."""
    if question not in ("time", "cost"):
        return False
    return any(
        run.get("task") not in ("infer", "serve")
        and not any(run.get(name) for name in AMOUNTS if name != "epochs")
        and not _is_settled(run)
        for run in spoken
    )


def _is_of_running(sheet: Sheet) -> bool:
    """Whether a model is to be run, which is inference as well as training."""
    return bool({"run", "running", "runs", "跑"} & {token.text for token in sheet.tokens})


def _usual_question(spoken: list[Fields], previous: Question | None) -> str:
    if previous:
        return previous.question
    return "fit" if all(run.get("gpu") for run in spoken) else "need_memory"


def _merged(spoken: list[Fields], previous: Question | None, asked: Asked) -> list[Fields]:
    """The new words laid over the last runs, unless the message names its own model and is no follow-up."""
    if previous is None or not previous.spoken:
        return spoken
    if all(run.get("model") for run in spoken) and not asked.follow_up:
        return spoken
    return _laid_over(previous.spoken, spoken)


def _laid_over(before: list[Fields], after: list[Fields]) -> list[Fields]:
    if len(after) == 1:
        return [_overridden(old, after[0]) for old in before]
    return [_overridden(before[0], new) for new in after]


def _overridden(old: Fields, new: Fields) -> Fields:
    """Old fields give way where the new ones speak of the same thing."""
    kept = dict(old)
    if "gpu" in new or "memory_gb" in new:
        for name in ("gpu", "memory_gb", "nodes"):
            kept.pop(name, None)
    if "gpu_count" in new:
        kept.pop("nodes", None)
        kept["parallel"] = {key: value for key, value in (old.get("parallel") or {}).items() if key != "data"}
    if "method" in new or "weight_format" in new:
        kept = _without_format(kept, new)
    return {key: value for key, value in {**kept, **new}.items() if value != {}}


def _without_format(kept: Fields, new: Fields) -> Fields:
    """A new method brings its own base format; a new format turns QLoRA back into LoRA before it is settled again."""
    if "method" in new and "weight_format" not in new and kept.get("method") == "qlora":
        kept.pop("weight_format", None)
    if "weight_format" in new and "method" not in new and kept.get("method") == "qlora":
        kept["method"] = "lora"
    return kept
