"""The shape of a reply, as every surface gets it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from estimator.schema import Estimate
from knowledge.diagnosis import Diagnosis

Reply = Literal["answer", "clarify", "ignore", "refuse"]


class Figure(BaseModel):
    """A number of the text that a tool produced, with the path in the Answer that it was taken from."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    value: float
    unit: str
    source: str = Field(alias="from")


class ReadingShown(BaseModel):
    """What was read from which words, and why."""

    field: str
    value: Any
    text: str
    why: str


class RentShown(BaseModel):
    """What a card costs to rent, USD per card and hour: least and most of one or two classes, with day and source."""

    gpu: str
    classes: list[dict[str, Any]]


class FewestShown(BaseModel):
    """The least count of a card that holds a run, how it is spread, and its peak; not ``fits``: none was found."""

    gpu: str
    gpu_count: int
    fits: bool
    peak_bytes: int = 0
    way: str = ""
    way_zh: str = ""


class Choice(BaseModel):
    """A value of a field that may have been meant by a word that was not understood."""

    field: str
    value: Any


class Known(BaseModel):
    """What the catalogue knows of a model or a card; sizes end in ``_bytes``."""

    kind: Literal["model", "gpu"]
    name: str
    facts: dict[str, Any]
    note: str = ""


class Answer(BaseModel):
    """The reply to one message; ``runs`` hold only what the words said, plus what was resolved from them.

    ``smallest_card_gb`` has, for each estimate without a card, the smallest size of card that holds it;
    ``fewest`` has, for each run of a question how many of a card are needed, the least count;
    ``unknown_family`` is the family named with a size that stands in for it. ``entries`` are what the knowledge says to
    the question, by id. ``remarks`` is what a pasted config or command has that is not a run: unknown keys,
    contradictions, defaults. ``spoken``, which is not printed, holds
    the runs as the words alone have them: what a follow-up builds upon. ``said`` are sentences of a language model,
    also in ``text``, in which every number is one of the rest of the text.
    """

    id: Any = None
    lang: Literal["en", "zh"] = "en"
    reply: Reply = "answer"
    question: str = "other"
    runs: list[dict[str, Any]] = []
    spoken: list[dict[str, Any]] = Field(default=[], exclude=True)
    missing: list[str] = []
    invalid: list[str] = []
    estimates: list[Estimate] = []
    smallest_card_gb: list[int | None] = []
    rents: list[RentShown | None] = []
    fewest: list[FewestShown | None] = []
    unknown_family: str = ""
    prices: Any = None
    diagnosis: Diagnosis | None = None
    known: Known | None = None
    entries: list[str] = []
    readings: list[ReadingShown] = []
    choices: list[Choice] = []
    said: str = ""
    remarks: list[str] = []
    text: str = ""
    numbers: list[Figure] = []
