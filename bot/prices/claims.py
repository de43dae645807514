"""What somebody says that a card costs, against what is known: by class of provider, and in shops. Pure."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

HOURS = {"hour": 1.0, "day": 24.0}


class Claim(NamedTuple):
    """A price of one card that was said, or a range of it, in a currency; a month is told as a day of it."""

    low: float
    high: float
    currency: str
    per: Literal["hour", "day", "buy"]


class Borne(NamedTuple):
    """How a claim stands to what is known, by the numbers of ranges or purchases in their list.

    ``within``: what is asked lies in it, in part at least; ``less``: it is all below; ``more``: it is all above.
    """

    within: tuple[int, ...]
    less: tuple[int, ...]
    more: tuple[int, ...]


def borne_out(claim: Claim, spans: Iterable[tuple[int, float, float]]) -> Borne:
    """The claim against spans of prices, each with its number, lowest and highest, in the unit of the claim."""
    listed = list(spans)
    less = tuple(number for number, _low, high in listed if high < claim.low)
    more = tuple(number for number, low, _high in listed if low > claim.high)
    return Borne(tuple(number for number, _low, _high in listed if number not in (*less, *more)), less, more)
