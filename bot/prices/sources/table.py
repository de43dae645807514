"""The administrator's own table, CSV or YAML: rents in any currency, contracts, purchase prices.

A line that cannot be read keeps the whole new table out: what was read before stays in force.
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.prices.current import TABLES
from bot.prices.money import Rates, UnknownCurrency, bundled_rates
from bot.prices.offers import Offer, ProviderClass
from bot.prices.purchases import Purchase
from bot.prices.regions import region_class
from bot.prices.sources import Fetched, SourceFailed
from estimator.catalogue.gpus import find_gpu
from estimator.errors import EstimatorError

HOURS = {"hour": 1.0, "day": 24.0, "month": 720.0}
"""A month of rent has 30 days here, as contracts are offered."""
MOST_BYTES, MOST_LINES = 2**20, 5_000


def _day(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


class Line(BaseModel):
    """A line of the table.

    ``price`` is for an hour, day or month (``per``) or for buying, of one card or (``price_of``) of a host with all
    its ``gpu_count`` cards.
    """

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    gpu: Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
    price: Annotated[float, Field(gt=0, le=10_000_000)]
    currency: str = "CNY"
    kind: Literal["rent", "spot", "lease", "buy"] = "rent"
    per: Literal["hour", "day", "month"] = "hour"
    price_of: Literal["card", "host"] = "card"
    gpu_count: Annotated[int, Field(ge=1, le=100_000)] = 1
    provider: str = "own"
    provider_class: ProviderClass | None = None
    region: str = ""
    as_of: Annotated[date, BeforeValidator(_day)]
    valid_until: Annotated[date | None, BeforeValidator(_day)] = None
    source: str = "own table"
    note: str = ""

    @property
    def of_one(self) -> float:
        """The price of one card."""
        return self.price / self.gpu_count if self.price_of == "host" else self.price


@dataclass(frozen=True, slots=True)
class OwnTable:
    """The table at a path, which must be there where a setting names it (``chosen``); ``rates``: USD for its prices."""

    path: Path
    rates: Rates = field(default_factory=bundled_rates)
    chosen: bool = False
    name: str = "table"

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        """The rents of the table; a table that is no longer there has none."""
        content = self._content()
        mark = hashlib.sha256(content).hexdigest() + now.date().isoformat()
        if mark == etag:
            return None
        lines = list(self._valid(content, now))
        offers = [self._offer(number, line) for number, line in lines if line.kind != "buy"]
        return Fetched(offers, len(lines), {}, mark, mark)

    def purchases(self, now: datetime) -> tuple[Purchase, ...]:
        """What the table says of buying."""
        return tuple(
            Purchase(self._gpu(number, line), "own", self._usd(number, line), line.as_of.isoformat(), line.source)
            for number, line in self._valid(self._content(), now)
            if line.kind == "buy"
        )

    def _content(self) -> bytes:
        if not self.path.exists():
            if self.chosen:
                raise SourceFailed(f"{self.path} is not there; VRAM_BOT_PRICE_TABLE names it")
            return b""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise SourceFailed(f"{self.path.name} cannot be read: {error.strerror or error}") from None
        if len(content) > MOST_BYTES:
            raise SourceFailed(f"{self.path.name} is larger than 1 MiB; keep only the prices in it")
        return content

    def _valid(self, content: bytes, now: datetime) -> Iterator[tuple[int, Line]]:
        """The lines that are in force, with their numbers. Raises SourceFailed with the first fault."""
        for number, line in _lines(self.path.name, content):
            if line.as_of > now.date():
                raise _fault(self.path.name, number, f"as_of {line.as_of} is in the future")
            if line.valid_until is None or line.valid_until >= now.date():
                yield number, line

    def _gpu(self, number: int, line: Line) -> str:
        try:
            return find_gpu(line.gpu).name
        except EstimatorError as error:
            raise _fault(self.path.name, number, error.message) from None

    def _usd(self, number: int, line: Line) -> float:
        """What one card costs."""
        try:
            return self.rates.to_usd(line.of_one, line.currency)
        except UnknownCurrency as error:
            why = f"no exchange rate for {line.currency}; known are {error.known}"
            raise _fault(self.path.name, number, why) from None

    def _offer(self, number: int, line: Line) -> Offer:
        hours = HOURS[line.per]
        classed = line.provider_class or ("lease-cn" if line.kind == "lease" else "own")
        return Offer(
            gpu=self._gpu(number, line), provider=line.provider, provider_class=classed,
            instance=f"{line.kind}/{line.per}", gpu_count=line.gpu_count, region=line.region or "*",
            region_class=region_class(line.region), spot=line.kind == "spot",
            usd_per_gpu_hour=round(self._usd(number, line) / hours, 6), native_price=round(line.of_one / hours, 6),
            currency=line.currency.upper(), as_of=line.as_of.isoformat(), source=line.source, note=line.note,
            valid_until=line.valid_until.isoformat() if line.valid_until else "",
        )  # fmt: skip


def table_in(folder: Path, chosen: Path | None) -> OwnTable | None:
    """The table that was chosen, or the one that lies in the bot's folder."""
    if chosen is not None:
        return OwnTable(chosen, chosen=True)
    return next((OwnTable(folder / name) for name in TABLES if (folder / name).exists()), None)


def _fault(name: str, number: int, what: str) -> SourceFailed:
    return SourceFailed(f"{name}, line {number}: {what}; the prices read before stay in force")


def _lines(name: str, content: bytes) -> Iterator[tuple[int, Line]]:
    if not content.strip():
        return
    rows = _yaml_rows(name, content) if name.endswith((".yaml", ".yml")) else _csv_rows(name, content)
    for count, (number, row) in enumerate(rows):
        if count >= MOST_LINES:
            raise _fault(name, number, f"more than {MOST_LINES:,} prices")
        try:
            yield number, Line.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the line"
            said = str(first["msg"]).removeprefix("Value error, ")
            raise _fault(name, number, f'"{where}": {said[:1].lower()}{said[1:]}') from None


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceFailed(f"{name} is not UTF-8 text; save it as UTF-8") from None


def _csv_rows(name: str, content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(_text(name, content)), restkey="", strict=True)
    try:
        for row in reader:
            if any(row.values()):
                if "" in row:
                    raise _fault(name, reader.line_num, "more values than columns")
                yield reader.line_num, {key.strip(): value for key, value in row.items() if value}
    except csv.Error as error:
        raise _fault(name, reader.line_num, str(error)) from None


def _yaml_rows(name: str, content: bytes) -> Iterator[tuple[int, Any]]:
    import yaml  # only who writes YAML needs it

    try:
        node = yaml.compose(_text(name, content), Loader=yaml.SafeLoader)
        listed = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _fault(name, mark.line + 1 if mark else 1, getattr(error, "problem", None) or "no YAML") from None
    if not isinstance(node, yaml.SequenceNode):
        raise _fault(name, 1, "a list of prices is wanted, each with gpu, price and as_of")
    yield from zip((one.start_mark.line + 1 for one in node.value), listed, strict=True)
