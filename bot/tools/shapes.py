"""The tools as pydantic models: an instance is a call, its fields are the arguments, ``answer`` runs it.

No tool writes, asks the network for more than a model's public config, or sees anything but its arguments.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bot import service
from bot.answer import Answer
from estimator.schema import Run

MOST_RUNS = 12
LONGEST_NAME = 200
LONGEST_LOG = 2**20
SIZES = ("0.5b", "1.5b", "3b", "7b", "14b", "32b", "72b")
BIGGEST = {"micro_batch": "max_batch", "seq_len": "max_seq", "model": "max_model"}

RunGiven = Annotated[Run, Field(description="The run. Give only what is known; defaults are filled in and told.")]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class Tool(BaseModel):
    """A call of a tool."""

    model_config = ConfigDict(extra="forbid")
    name: ClassVar[str]

    def answer(self, lang: str) -> Answer:
        """The reply in a language, its text made of figures of the estimator alone. Raises EstimatorError."""
        raise NotImplementedError


class _OfCard(Tool):
    """A call that makes sense only with a card."""

    run: RunGiven

    @model_validator(mode="after")
    def _card_is_named(self) -> Self:
        if not self.run.gpu:
            raise ValueError('run.gpu is missing: name the card, such as "RTX 4090" or "24GB"')
        return self


class EstimateRun(Tool):
    """Memory that one training, inference or serving run needs, part by part, and whether it fits a GPU."""

    name: ClassVar[str] = "estimate"
    run: RunGiven

    def answer(self, lang: str) -> Answer:
        """What the run needs."""
        return service.of_runs("fit" if self.run.gpu else "need_memory", [self.run], lang)


class Downgrades(_OfCard):
    """What to change first when a run does not fit its GPU: each step with its new peak, cost and flags."""

    name: ClassVar[str] = "downgrades"

    def answer(self, lang: str) -> Answer:
        """The run with its steps and what to type for them."""
        return service.of_runs("advice", [self.run], lang)


class LargestThatFits(_OfCard):
    """The largest micro-batch, sequence length or model size that fits a GPU, the rest as given."""

    name: ClassVar[str] = "largest_that_fits"
    what: Literal["micro_batch", "seq_len", "model"] = Field(description="What to make as large as possible.")
    sizes: list[Name] = Field(
        default=list(SIZES),
        min_length=1,
        max_length=MOST_RUNS,
        description='Only for what="model": models or sizes to try in place of run.model, smallest first.',
    )

    def answer(self, lang: str) -> Answer:
        """The run with its limits, or each size with its verdict."""
        runs = [self.run]
        if self.what == "model":
            runs = [self.run.model_copy(update={"model": size}) for size in self.sizes]
        return service.of_runs(BIGGEST[self.what], runs, lang)


class Compare(Tool):
    """Several runs side by side: methods, models, GPUs, lengths, formats."""

    name: ClassVar[str] = "compare"
    runs: list[Run] = Field(min_length=2, max_length=MOST_RUNS, description="The runs to compare, each in full.")

    def answer(self, lang: str) -> Answer:
        """A line for each run."""
        return service.of_runs("compare", self.runs, lang)


class Cost(Tool):
    """Time and money of a run: bill, providers, rent or buy; without a GPU the cards that hold it, ranked by cost."""

    name: ClassVar[str] = "cost"
    run: RunGiven

    def answer(self, lang: str) -> Answer:
        """The run with its time and bill; it needs tokens, or samples, or hours in economics for a total."""
        return service.of_runs("cost", [self.run], lang)


class Prices(Tool):
    """What GPUs cost to rent per hour and to buy, with dates and sources."""

    name: ClassVar[str] = "prices"
    gpus: list[Name] = Field(default=[], max_length=MOST_RUNS, description="GPU names; empty: the usual ones.")
    region: str = Field(default="", max_length=40, description="US, Europe, CN, Asia-Pacific or a provider's region.")
    spot: bool | None = Field(default=None, description="true: only spot offers; false: only on demand; null: both.")
    currency: Literal["", "USD", "CNY"] = Field(default="", description="Empty: by the language.")

    def answer(self, lang: str) -> Answer:
        """Ranges by class of provider, and the cheapest offers."""
        return service.prices(self.gpus, lang, self.region, self.spot, self.currency)


class Diagnose(Tool):
    """Why a run failed, from its log, traceback or config: causes, what used the memory, what helps."""

    name: ClassVar[str] = "diagnose"
    text: str = Field(
        min_length=1, max_length=LONGEST_LOG, description="The log or traceback as it is, and what was run if known."
    )

    def answer(self, lang: str) -> Answer:
        """The diagnosis."""
        return service.why(self.text, lang)


class Lookup(Tool):
    """Facts about a model or a GPU, or what is known about a topic of GPU memory."""

    name: ClassVar[str] = "lookup"
    kind: Literal["model", "gpu", "topic"] = Field(description="What the name is of.")
    query: Name = Field(description='A model ("qwen2.5-7b"), a GPU ("A100 80GB") or a question ("why is QLoRA slow").')

    def answer(self, lang: str) -> Answer:
        """The facts, or the entry that is nearest to the topic."""
        return (
            service.about_topic(self.query, lang)
            if self.kind == "topic"
            else service.facts(self.kind, self.query, lang)
        )


TOOLS: dict[str, type[Tool]] = {
    tool.name: tool for tool in (EstimateRun, Downgrades, LargestThatFits, Compare, Cost, Prices, Diagnose, Lookup)
}
