"""Exchange rates with their day, and amounts of money as people read them."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from estimator.errors import EstimatorError

RATES = Path(__file__).parent / "data" / "exchange.csv"
SIGNS = {"USD": "$", "CNY": "¥", "EUR": "€", "GBP": "£"}


class UnknownCurrency(EstimatorError):
    """No rate is known for a currency; ``known`` lists those that are."""

    def __init__(self, currency: str, known: tuple[str, ...]) -> None:
        names = ", ".join(("USD", "CNY", *(one for one in known if one not in ("USD", "CNY"))))
        super().__init__(
            f"no exchange rate is known for {currency[:20]!r}; use one of {names}",
            f"没有 {currency[:20]!r} 的汇率；可用：{names}",
            "currency",
        )
        self.currency, self.known = currency, names


class Rates(NamedTuple):
    """Units of each currency for one euro, as the European Central Bank had them on a day."""

    as_of: str
    per_eur: dict[str, float]

    def rate(self, currency: str) -> float:
        """Units of a currency for one US dollar. Raises UnknownCurrency."""
        code = currency.strip().upper()
        code = {"RMB": "CNY", "$": "USD", "¥": "CNY"}.get(code, code)
        if code not in self.per_eur:
            raise UnknownCurrency(currency, tuple(sorted(self.per_eur)))
        return self.per_eur[code] / self.per_eur["USD"]

    def to_usd(self, amount: float, currency: str) -> float:
        """An amount in US dollars."""
        return amount / self.rate(currency)


@cache
def bundled_rates() -> Rates:
    """The rates that ship with the bot."""
    rows = list(csv.DictReader(RATES.read_text("utf-8").splitlines()))
    return Rates(rows[0]["as_of"], {"EUR": 1.0, **{row["currency"]: float(row["per_eur"]) for row in rows}})


def written(price: float, currency: str) -> str:
    """A price in its currency as it is read: its sign, and as many digits as say something."""
    digits = 0 if price >= 100 else 2 if price >= 0.1 or not price else 4
    return f"{SIGNS.get(currency, f'{currency} ')}{price:,.{digits}f}"


def amount(usd: float, currency: str, rates: Rates) -> str:
    """A price in US dollars as it is read in a currency."""
    return written(usd * rates.rate(currency), currency)
