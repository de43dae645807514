"""From a paste to a Reading: the one entry point of this package."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.reading.assemble import assembled
from bot.reading.draft import Draft
from bot.reading.entries import LONGEST_TEXT, Piece, Refused
from bot.reading.facts import Fact, Facts
from bot.reading.gathered import Assembled
from bot.reading.pieces import pieces_of
from bot.reading.prose import note_prose
from bot.reading.settle.run import settled_draft
from bot.reading.tables import Tool
from bot.texts import say
from estimator.schema import Problem, Run

NO_TOOL = Tool(name="", task="train")


class Reading(BaseModel):
    """What a paste says: a partial run, each field's origin, what is unknown, what disagrees, what is impossible.

    ``words`` are those around it; ``refused`` says that it was not read for a reason, not for lack of a config.
    ``unseen`` is a config file that a command names and the paste lacks: what it would say is not known.
    """

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    id: Any = None
    run: dict[str, Any] = Field(default_factory=dict)
    origins: dict[str, str] = Field(default_factory=dict, serialization_alias="from")
    unknown_keys: list[str] = Field(default_factory=list)
    contradictions: list[str] = Field(default_factory=list)
    contradictions_zh: list[str] = Field(default_factory=list)
    invalid: list[str] = Field(default_factory=list)
    tool: str | None = None
    unseen: str | None = None
    error: Problem | None = None
    refused: bool = Field(default=False, exclude=True)
    words: str = Field(default="", exclude=True)

    @property
    def stated(self) -> dict[str, Any]:
        """The run without the fields that are a tool's defaults."""
        kept = {name: value for name, value in flat(self.run).items() if not self.origins[name].startswith("default")}
        return nested(kept)


def read_paste(text: str) -> Reading:
    """Read a paste; one that cannot or must not be read gives an error instead of a run."""
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_TEXT:
        return _refused("read.too_long")
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    try:
        pieces = pieces_of(clean)
        return _reading(assembled(pieces), pieces)
    except Refused as refused:
        return _refused(refused.key, line=refused.line, detail=refused.detail)


def _refused(key: str, **values: Any) -> Reading:
    problem = Problem(field=None, message=say("en", key, **values), message_zh=say("zh", key, **values))
    return Reading(error=problem, refused=key != "read.nothing")


def _reading(found: Assembled, pieces: list[Piece]) -> Reading:
    draft = Draft(
        found.facts,
        found.tool or NO_TOOL,
        calls=frozenset(found.calls),
        identified=found.identified,
        unseen=found.unseen,
    )
    settled_draft(draft, found.task)
    words = "\n".join(piece.text for piece in pieces if piece.form == "prose").strip()
    note_prose(draft, words)
    if not draft.run:
        return _refused("read.nothing")
    for name, one, other in found.repeated:
        draft.clash("twice", name, one=one, other=other)
    invalid = _impossible(draft)
    return Reading(
        run=nested(draft.run),
        origins=draft.origins,
        unknown_keys=found.unknown,
        contradictions=draft.clashes_in("en"),
        contradictions_zh=draft.clashes_in("zh"),
        invalid=invalid,
        tool=found.tool.name if found.tool else None,
        unseen=found.unseen or None,
        words=words,
    )


def _impossible(draft: Draft) -> list[str]:
    """Values that no run can have: named, and taken out of the run."""
    told = [_told(fact) for _, fact in draft.facts.invalid]
    run = {"model": "x", **nested(draft.run)}
    try:
        Run.model_validate(run)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            name = next((field for field in draft.run if _is_at(field, one["loc"])), None)
            if name:
                told.append(f"{draft.origins.pop(name)}: {str(draft.run.pop(name))[:60]}")
    return told


def _is_at(field: str, place: tuple[int | str, ...]) -> bool:
    path = tuple(field.split("."))
    return tuple(str(part) for part in place[: len(path)]) == path


def _told(fact: Fact) -> str:
    return f"{fact.origin}: {str(fact.value)[:60]}"


def flat(run: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields by their dotted names; the model stays whole."""
    found: dict[str, Any] = {}
    for name, value in run.items():
        if isinstance(value, dict) and f"{prefix}{name}" != "model":
            found.update(flat(value, f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = value
    return found


def nested(fields: dict[str, Any]) -> dict[str, Any]:
    """Dotted names as the nested objects of a Run."""
    run: dict[str, Any] = {}
    for name, value in fields.items():
        *groups, last = name.split(".")
        inner = run
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    return run


__all__ = ["Facts", "Reading", "read_paste"]
