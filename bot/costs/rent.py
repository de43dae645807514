"""Which rental price is taken for a run, and why."""

from dataclasses import dataclass

from bot.costs.market import ClassPrice, preferred
from bot.prices.money import Rates, UnknownCurrency, bundled_rates
from estimator.economics import Assumed, Economics
from estimator.schema import Run

BELOW, ABOVE = 0.7, 1.4
"""A price so far outside what is offered for a card is no price of one card."""


@dataclass(frozen=True, slots=True)
class Rent:
    """USD per card and hour: low, expected, high; ``source`` is the class, or the user."""

    low: float
    expected: float
    high: float
    provider_class: str
    said: list[Assumed]


def said_of(run: Run) -> Economics:
    """What was said about time and money."""
    return run.economics or Economics()


def in_usd(amount: float, currency: str | None, rates: Rates | None = None) -> float:
    """An amount in US dollars. Raises ``EstimatorError`` for a currency that no rate is known of."""
    known = rates or bundled_rates()
    try:
        return known.to_usd(amount, currency or "USD")
    except UnknownCurrency as error:
        error.field = "economics.currency"
        raise


def check_currency(said: Economics) -> None:
    """Raises ``EstimatorError`` for a currency that no rate is known of, whether or not an amount is in it."""
    in_usd(0.0, said.currency)


def exchange_said(currency: str | None) -> list[Assumed]:
    """The rate that was used, with its day."""
    if (currency or "USD").upper() == "USD":
        return []
    rates = bundled_rates()
    code = str(currency).upper()
    why = f"{rates.rate(code):.4f} {code} for 1 USD, European Central Bank, {rates.as_of}"
    why_zh = f"1 美元 = {rates.rate(code):.4f} {code}，欧洲央行 {rates.as_of}"
    return [Assumed(field="currency", value=code, why=why, why_zh=why_zh, measured=True)]


def rent_of(run: Run, prices: list[ClassPrice]) -> Rent | None:
    """The price that the user gave, else the usual class's; None where neither is known."""
    own = stated_price(run, prices)
    if own is not None:
        return own
    said = said_of(run)
    chosen = preferred(prices, said.provider_class, said.country)
    if chosen is None:
        return None
    return Rent(chosen.low, chosen.middle, chosen.high, chosen.provider_class, [_of_class(chosen)])


def stated_price(run: Run, prices: list[ClassPrice]) -> Rent | None:
    """The user's price per card; for several cards it may be of all together, which what is offered decides."""
    said = said_of(run)
    given = run.price_usd_per_hour if run.price_usd_per_hour is not None else said.price
    if given is None:
        return None
    usd = given if run.price_usd_per_hour is not None else in_usd(given, said.currency)
    count = run.gpu_count or 1
    unit, why, why_zh = _unit(usd, count, said.price_unit, prices)
    each = usd / count if unit == "instance" else usd
    told = Assumed(field="price", value=round(each, 4), why=why, why_zh=why_zh, measured=True)
    exchange = exchange_said(said.currency) if run.price_usd_per_hour is None else []
    return Rent(each, each, each, "stated", [told, *exchange])


def _unit(usd: float, count: int, stated: str | None, prices: list[ClassPrice]) -> tuple[str, str, str]:
    """Whether a price is of one card or of all of them together."""
    if count == 1:
        return "gpu", "USD per card and hour, as given", "按给出的每卡时价格（美元）"
    if stated:
        whose = {"gpu": ("one card", "每张卡"), "instance": (f"all {count} cards", f"全部 {count} 张卡")}[stated]
        return stated, f"as given, per hour of {whose[0]}", f"按给出的价格，{whose[1]}每小时"
    least = min((price.low for price in prices), default=0.0)
    most = max((price.high for price in prices), default=float("inf"))
    of_one = BELOW * least <= usd <= ABOVE * most
    of_all = BELOW * least <= usd / count <= ABOVE * most
    if prices and of_one and not of_all:
        why = f"{usd:g} USD/h taken as of one card: of {count} together it would be below every offer"
        return "gpu", why, f"{usd:g} 美元/小时按单卡理解：若为 {count} 张卡合计则低于所有报价"
    why = f'{usd:g} USD/h taken as of all {count} cards together; say "per card" if it is of one'
    return "instance", why, f"{usd:g} 美元/小时按 {count} 张卡合计理解；若是单卡价请写“每卡”"


def _listings(price: ClassPrice) -> str:
    return "1 listing" if price.listings == 1 else f"{price.listings} listings"


def _of_class(price: ClassPrice) -> Assumed:
    """Class, spread, day and source of the price taken."""
    day = price.as_of or "undated"
    facts = f"{price.low:.2f}-{price.high:.2f}; {day}; {price.cheapest.source}"
    why = f"median of {price.provider_class}, {_listings(price)}, USD per card and hour ({facts})"
    day_zh = price.as_of or "无日期"
    why_zh = (
        f"{price.provider_class} 类 {price.listings} 条报价的中位价，美元/卡时（{price.low:.2f}–{price.high:.2f}；"
        f"{day_zh}；{price.cheapest.source}）"
    )
    return Assumed(field="price", value=round(price.middle, 4), why=why, why_zh=why_zh, measured=True)
