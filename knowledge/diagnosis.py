"""What is told about a run that went out of memory: the shape of a diagnosis."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from estimator.schema import Verdict
from knowledge.logs.message import Message


class Fix(BaseModel, defer_build=True):
    """What helps, in the shape of a Step; peak and verdict are set where the estimator could work them out."""

    id: str
    title: str
    change: dict[str, Any] = {}
    allocated_peak: int | None = None
    saves: int | None = None
    cost: Literal["a flag", "slower", "changes the training", "more hardware"]
    verdict: Verdict | None = None
    commands: list[str] = []


class Cause(BaseModel, defer_build=True):
    """One cause with its score from 0 to 1, what speaks for it, and what would help."""

    id: str
    score: float
    evidence: list[str]
    fixes: list[Fix] = []


class Explained(BaseModel, defer_build=True):
    """A part of the gap between estimate and observation, in bytes."""

    id: str
    bytes: int


class Gap(BaseModel, defer_build=True):
    """What was estimated, what was observed, and named parts that add up to the difference."""

    estimated: int
    observed: int
    explained_by: list[Explained]


class Diagnosis(BaseModel, defer_build=True):
    """What a wreck says and what to do about it."""

    id: Any = None
    lang: str = "en"
    phase: str = "unknown"
    message: Message = Field(default_factory=Message)
    derived: dict[str, int] = {}
    run: dict[str, Any] | None = None
    causes: list[Cause] = []
    gap: Gap | None = None
    useless: list[str] = []
    questions: list[str] = []
    text: str = ""
