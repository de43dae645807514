"""Owning a card against renting it: every line of the cost of an hour of use, and when owning pays."""

from dataclasses import asdict, replace
from typing import Any

from bot.costs.market import ClassPrice
from bot.costs.rent import exchange_said, in_usd, said_of
from bot.prices.current import current_market
from bot.prices.purchases import Purchase
from estimator.cost.interruptions import waste
from estimator.cost.owning import (
    HOURS_PER_YEAR,
    Cluster,
    Owning,
    assumptions,
    break_even_utilisation,
    known,
    owning,
    payback_months,
    server_of,
)
from estimator.cost.speed import Accelerator
from estimator.economics import Assumed, CostLine, Economics, RentOrBuy
from estimator.schema import Run

USUAL_SERVER = 8
OVERRIDES = {
    "years": "life_years", "residual": "residual", "overhead": "overhead", "finance": "finance", "pue": "pue",
    "maintenance": "maintenance", "load": "load", "fte_per_gpu": "fte_per_gpu",
}  # fmt: skip
"""What may be said in place of a default, by the name it has in ``Cluster``."""
MONEY = {
    "electricity_price": "price_per_kwh", "salary": "salary", "colocation_per_kw_month": "colocation_per_kw_month",
}  # fmt: skip


def rent_or_buy(
    run: Run, card: Accelerator, prices: list[ClassPrice], rent: float | None, rent_class: str
) -> tuple[RentOrBuy | None, list[Assumed]]:
    """The comparison for one card, in US dollars; None where no purchase price of the card is known."""
    said = said_of(run)
    place = said.country or "us"
    found = cluster(card, said, place)
    if found is None:
        return None, []
    owned, used = owning(found), said.utilisation or 1.0
    whole = owned.per_hour()
    lines = hourly_lines(found, owned, used, said.spare or 0.0)
    result = RentOrBuy(
        gpu=card.name,
        break_even_utilisation=break_even_utilisation(whole, rent) if rent else None,
        break_even_months=_months(found, owned, rent, used) if rent else None,
        lines=lines,
        usd_per_gpu_hour=sum(line.usd for line in lines),
        utilisation=used,
        years=found.life_years,
        rent_usd_per_gpu_hour=rent,
        rent_class=rent_class,
        invested_usd_per_gpu=found.invested / found.gpus,
        against=[(one.provider_class, one.middle, whole / one.middle) for one in prices if one.middle],
        country=place,
    )
    return result, _assumed(card, said, found, place)


def cluster(card: Accelerator, said: Economics, place: str) -> Cluster | None:
    """The machine that would be bought, in US dollars, with what was said in place of the defaults."""
    price = _price(card, said, place)
    if price is None:
        return None
    server, local, gpus = _server(card.name, place), assumptions(card.kind, place), USUAL_SERVER
    currency = local.pop("currency")
    kw = said.kw or (server["kw"] / server["gpus"] if server else _kw(card))
    local |= {name: in_usd(local[name], currency) for name in ("price_per_kwh", "salary")}
    return replace(Cluster(price=price * gpus, gpus=gpus, kw=kw * gpus, **local), **_said(said))


def _said(said: Economics) -> dict[str, Any]:
    """What was said in place of the defaults, money in US dollars."""
    given = {key: getattr(said, key) for key in (*OVERRIDES, *MONEY) if getattr(said, key) is not None}
    return {
        OVERRIDES.get(key) or MONEY[key]: in_usd(value, said.currency) if key in MONEY else value
        for key, value in given.items()
    }


def hourly_lines(found: Cluster, owned: Owning, used: float, spare: float) -> list[CostLine]:
    """USD per card and hour of use, line by line."""
    hours, lost = HOURS_PER_YEAR * used, waste(found.gpus)
    share = found.overhead / (1 + found.overhead)
    yearly = {
        "amortisation": owned.depreciation * (1 - share),
        "rack": owned.depreciation * share,
        "finance": owned.finance,
        "maintenance": owned.maintenance,
        **_power(found, owned),
        "labour": owned.labour,
    }
    each = {item: usd / hours for item, usd in yearly.items()}
    each["retries"] = sum(each.values()) * lost / (1 - lost)
    if spare:
        each["spare"] = sum(each.values()) * spare
    facts = {**asdict(found), "kw": found.kw / found.gpus, "lost": lost, "spare": spare}
    return [_line(item, usd, facts) for item, usd in each.items()]


def _power(found: Cluster, owned: Owning) -> dict[str, float]:
    if found.colocation_per_kw_month is not None:
        return {"colocation": owned.electricity}
    return {"electricity": owned.electricity, "cooling": owned.cooling}


def _line(item: str, usd: float, facts: dict[str, Any]) -> CostLine:
    said = known()["line"][item]
    why, why_zh = said["why"].format(**facts), said["why_zh"].format(**facts)
    return CostLine(item=item, usd=usd, why=why, why_zh=why_zh, assumed=said.get("assumed", False))


def _months(found: Cluster, owned: Owning, rent: float, used: float) -> float | None:
    """Months until the rent saved has paid what was invested; None when that is beyond the machine's life."""
    power = (owned.electricity + owned.cooling) / HOURS_PER_YEAR
    fixed = (owned.maintenance + owned.labour) / 12
    months = payback_months(found.invested / found.gpus, rent, used, power, fixed)
    return months if months is not None and months <= 12 * found.life_years else None


def _price(card: Accelerator, said: Economics, place: str) -> float | None:
    """USD of one card with its share of the server, before network and racks."""
    host: float = 1 + known()["host"]["share"]
    if said.purchase_price is not None:
        return in_usd(said.purchase_price, said.currency)
    if own := _own_purchase(card.name):
        return own.usd * host
    if server := _server(card.name, place):
        return in_usd(server["price"] / server["gpus"], known()["places"][server["place"]]["currency"])
    return card.price_usd * host if card.price_usd else None


def _own_purchase(name: str) -> Purchase | None:
    """What the administrator's table says the card costs to buy."""
    return next((one for one in current_market().purchases if one.gpu == name), None)


def _server(name: str, place: str) -> dict[str, Any] | None:
    """The dated price of a server with the card; where none is known of Europe, the American one."""
    return server_of(name, place if place == "cn" else "us")


def _kw(card: Accelerator) -> float:
    return (card.tdp_w or 0) / 1000 + known()["host"]["kw_per_card_beyond_tdp"] or 1.0


def _assumed(card: Accelerator, said: Economics, found: Cluster, place: str) -> list[Assumed]:
    """Where the price comes from, and what was taken for granted."""
    where = known()["places"][place]
    return [
        _of_price(card, said, found, place),
        Assumed(
            field="electricity",
            value=round(found.price_per_kwh, 4),
            why=f"USD/kWh, {place}: {where['why']}" if said.electricity_price is None else "USD/kWh, as given",
            why_zh=f"美元/度，{place}：{where['why_zh']}" if said.electricity_price is None else "美元/度，按给定值",
            measured=True,
        ),
        Assumed(
            field="labour",
            value=found.fte_per_gpu,
            why="operators a card; finance, load and maintenance are assumptions too",
            why_zh="每卡运维人数；利率、负载与维护比例同为假设",
        ),
        *exchange_said("CNY" if place == "cn" else said.currency),
    ]


def _of_price(card: Accelerator, said: Economics, found: Cluster, place: str) -> Assumed:
    """The purchase price with its source."""
    server, host, own = _server(card.name, place), known()["host"]["share"], _own_purchase(card.name)
    if said.purchase_price is not None:
        why, why_zh = "as given", "按给出的购置价"
    elif own:
        why = f"own price of the card ({own.as_of or 'undated'}, {own.source}) and {host:.0%} for the host (assumption)"
        why_zh = f"自有采购价（{own.as_of or '无日期'}，{own.source}）加主机 {host:.0%}（假设）"
    elif server:
        why = f"a share of a server of {server['gpus']}: {server['source']}"
        why_zh = f"{server['gpus']} 卡服务器分摊：{server['source']}"
    else:
        why = f"street price of the card ({card.price_as_of}) and {host:.0%} for the host (assumption)"
        why_zh = f"显卡市场价（{card.price_as_of}）加主机 {host:.0%}（假设）"
    return Assumed(
        field="purchase_price",
        value=round(found.price / found.gpus, 2),
        why=f"USD a card, {why}",
        why_zh=f"美元/卡，{why_zh}",
        measured=said.purchase_price is not None or server is not None,
    )
