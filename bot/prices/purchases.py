"""What cards cost to buy: dated street and launch prices of the card table; an administrator's own come first."""

import csv
from functools import cache
from typing import Literal, NamedTuple

from estimator.datafiles import read_text

Kind = Literal["own", "street", "launch"]
COLUMNS: tuple[tuple[Kind, str, str, str], ...] = (
    ("street", "street_usd", "street_asof", ""),
    ("launch", "launch_msrp_usd", "launch_date", "msrp_source"),
)
"""Where the card table has a price, its day and its source."""


class Purchase(NamedTuple):
    """A price of one card in USD, its day ("" where none is known), and who says so."""

    gpu: str
    kind: Kind
    usd: float
    as_of: str
    source: str


@cache
def known_purchases() -> tuple[Purchase, ...]:
    """Street prices with their days, and launch prices, of the card table."""
    sources = dict(csv.reader(read_text("sources.csv").splitlines()[1:]))
    return tuple(
        Purchase(row["name"], kind, float(row[column]), row[day], _source(row.get(source, ""), sources))
        for row in csv.DictReader(read_text("gpus.csv").splitlines())
        for kind, column, day, source in COLUMNS
        if row[column]
    )


STREET = "US shop prices, United-Compute/gpu-price-tracker"


def _source(code: str, sources: dict[str, str]) -> str:
    return sources.get(code, code) or STREET


def purchases_of(gpu: str, own: tuple[Purchase, ...] = ()) -> list[Purchase]:
    """What is known of buying a card: own prices, the street's, the launch's."""
    return [one for one in (*own, *known_purchases()) if one.gpu == gpu]
