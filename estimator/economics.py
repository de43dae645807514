"""The shapes of time and money: what may be said about them, and what is told.

Money is in US dollars where a name says ``usd``; shares are fractions (0.2 is 20 %).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from estimator.strict import Amount, Count, NoSwitch, Positive, Share, Strict

Country = Literal["us", "cn", "eu", "de"]
ProviderClass = Literal[
    "hyperscaler", "neocloud", "marketplace", "broker", "hyperscaler-cn", "marketplace-cn", "own", "lease-cn", "index"
]

DAY = len("2026-01-01")


class Economics(Strict):
    """What decides time and money beside the run itself; what is left out gets a default that the answer names.

    ``price`` per hour of one card or of all together (``price_unit``), ``purchase_price`` of one card,
    ``electricity_price`` per kWh, ``salary`` per year: in ``currency``. ``hours`` of wall time and
    ``tokens_per_second`` over all cards replace what would be estimated. ``kw`` is drawn by one card and its share of
    the host, ``colocation_per_kw_month`` takes the place of electricity and cooling.
    """

    price: Amount | None = None
    price_unit: Literal["gpu", "instance"] | None = None
    currency: Annotated[str, Field(max_length=40)] | None = None
    provider_class: ProviderClass | None = None
    spot: bool | None = None
    hours: Positive | None = None
    mfu: Share | None = None
    tokens_per_second: Positive | None = None
    ethernet: bool | None = None
    attempts: Count | None = None
    buffer: Annotated[float, Field(ge=0, le=10), NoSwitch("float")] | None = None
    idle: bool | None = None
    evaluation: bool | None = None
    storage_gb_months: Amount | None = None
    egress_gb: Amount | None = None
    rent_or_buy: bool | None = None
    country: Country | None = None
    purchase_price: Positive | None = None
    utilisation: Share | None = None
    years: Annotated[float, Field(gt=0, le=50), NoSwitch("float")] | None = None
    residual: Annotated[float, Field(ge=0, lt=1), NoSwitch("float")] | None = None
    overhead: Annotated[float, Field(ge=0, le=10), NoSwitch("float")] | None = None
    finance: Annotated[float, Field(ge=0, le=1), NoSwitch("float")] | None = None
    maintenance: Annotated[float, Field(ge=0, le=1), NoSwitch("float")] | None = None
    spare: Annotated[float, Field(ge=0, le=10), NoSwitch("float")] | None = None
    electricity_price: Amount | None = None
    pue: Annotated[float, Field(ge=1, le=10), NoSwitch("float")] | None = None
    load: Share | None = None
    kw: Positive | None = None
    colocation_per_kw_month: Amount | None = None
    salary: Amount | None = None
    fte_per_gpu: Amount | None = None


class Told(BaseModel):
    """What is told of time and money."""

    model_config = ConfigDict(defer_build=True)


class Assumed(Told):
    """A value of an answer about time or money with its reason; ``measured``: somebody measured or listed it."""

    field: str
    value: Any
    why: str
    why_zh: str = ""
    measured: bool = False


class Seconds(Told):
    """Wall time: low when everything goes well."""

    low: float
    expected: float
    high: float


class TimeEstimate(Told):
    """How long a job takes; ``tokens_per_second`` over all cards, at full speed.

    ``tokens`` is what is worked through in all, epochs, pairs and completions included (None for given hours).
    ``mfu`` is the share of the dense 16-bit peak, None where memory bandwidth decides. ``uplift`` is in the seconds.
    """

    seconds: Seconds | None
    tokens_per_second: float | None = None
    flops_per_token: float | None = None
    mfu: float | None = None
    basis: str
    basis_zh: str = ""
    measured: bool = False
    tokens: float | None = None
    uplift: float = 0.0
    generation_seconds: float = 0.0
    gpu_hours: Seconds | None = None
    notes: list[Assumed] = Field(default_factory=list)


class Usd(Told):
    """US dollars: low price and high speed, expected, high price and low speed."""

    low: float
    expected: float
    high: float


class CostLine(Told):
    """One line of a bill; ``assumed``: no source stands behind its share."""

    item: str
    usd: float
    why: str
    why_zh: str = ""
    assumed: bool = False


class PricedOffer(Told):
    """What a provider asks for a card, the least of its class where a day is known, and what the job comes to at it.

    Classes are never mixed: ``median`` and ``range`` are of this class alone, ``listings`` its rows. ``steps`` name
    what must be changed first for the run to fit. ``as_of`` empty: the source does not say the day. ``current``: one of
    today's sources says so.
    """

    gpu: str
    provider_class: str
    provider: str
    usd_per_gpu_hour: float
    as_of: str
    source: str
    usd_total: float | None = None
    fits: bool | None = None
    gpu_count: int = 1
    spot: bool = False
    median: float | None = None
    range: tuple[float, float] | None = None
    listings: int = 1
    steps: list[str] = Field(default_factory=list)
    steps_zh: list[str] = Field(default_factory=list)
    hours: float | None = None
    usd_per_million_tokens: float | None = None
    current: bool = False

    @property
    def has_day(self) -> bool:
        """Whether the day of the price is known, not only the month or year."""
        return len(self.as_of) == DAY


class RentOrBuy(Told):
    """Owning against renting: the lines are US dollars per card and useful hour and add up to ``usd_per_gpu_hour``.

    ``break_even_utilisation`` above 1: never. ``break_even_months`` at ``utilisation``, None when the rent saved never
    pays the price back within the card's life. ``against``: the same for each provider class.
    """

    gpu: str
    break_even_utilisation: float | None
    break_even_months: float | None
    lines: list[CostLine]
    usd_per_gpu_hour: float
    utilisation: float
    years: float
    rent_usd_per_gpu_hour: float | None = None
    rent_class: str = ""
    invested_usd_per_gpu: float = 0.0
    against: list[tuple[str, float, float]] = Field(default_factory=list)
    country: str = "us"


class CostEstimate(Told):
    """What a job costs; ``lines`` add up to ``usd.expected``. Without a price ``usd`` is None and ``why`` says so.

    Where cards are ranked, ``offers`` are in that order, and ``ranked_as_of`` is their newest day where none of today's
    sources has answered. ``not_ranked``: cards whose prices have no day, or are too old beside those of today.
    """

    usd: Usd | None = None
    lines: list[CostLine] = Field(default_factory=list)
    offers: list[PricedOffer] = Field(default_factory=list)
    not_ranked: list[PricedOffer] = Field(default_factory=list)
    ranked_as_of: str = ""
    rent_or_buy: RentOrBuy | None = None
    usd_per_gpu_hour: float | None = None
    usd_per_million_tokens: float | None = None
    with_buffer_usd: float | None = None
    assumptions: list[Assumed] = Field(default_factory=list)
    why: str = ""
    why_zh: str = ""
