"""What an owned card costs per hour of use, and when owning beats renting.

Per year: depreciation (I - residual) / life, interest on the mean of the capital bound, maintenance, electricity with
cooling (power usage effectiveness), operators. Straight-line, no tax; amounts in the currency of the place.
"""

from dataclasses import dataclass
from typing import Any

from estimator.cost.tables import table_of
from estimator.errors import EstimatorError

HOURS_PER_YEAR = 8760
HOURS_PER_MONTH = HOURS_PER_YEAR / 12


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server or several, bought. Shares are fractions; ``maintenance`` and ``finance`` per year of what was invested.

    ``price`` is of all cards with their hosts, ``overhead`` what network, racks and spares add; ``kw`` at full load,
    ``load`` the mean share of it; ``colocation_per_kw_month`` replaces electricity and cooling when it is given.
    """

    price: float
    gpus: int
    kw: float
    currency: str = "USD"
    overhead: float = 0.15
    life_years: float = 4
    residual: float = 0.20
    finance: float = 0.06
    maintenance: float = 0.05
    load: float = 0.75
    pue: float = 1.54
    price_per_kwh: float = 0.10
    fte_per_gpu: float = 0.0075
    salary: float = 120_000
    floor_fte: float = 0.0
    colocation_per_kw_month: float | None = None

    @property
    def invested(self) -> float:
        """Money bound at the start."""
        return self.price * (1 + self.overhead)


@dataclass(frozen=True, slots=True)
class Owning:
    """Cost per card and year, line by line, in ``currency``."""

    depreciation: float
    finance: float
    maintenance: float
    electricity: float
    cooling: float
    labour: float
    currency: str

    @property
    def per_year(self) -> float:
        """Sum of the lines."""
        return self.depreciation + self.finance + self.running

    @property
    def running(self) -> float:
        """What goes on while the machine stands: all but depreciation and interest."""
        return self.maintenance + self.electricity + self.cooling + self.labour

    def per_hour(self, utilisation: float = 1.0, waste: float = 0.0) -> float:
        """Cost of a useful card-hour at a share of hours used. Raises ``EstimatorError`` unless 0 < share <= 1."""
        if not 0 < utilisation <= 1:
            raise EstimatorError(
                f"utilisation {utilisation:g} must lie above 0 and at most 1 (0.6 means 60 %)",
                f"利用率 {utilisation:g} 应大于 0 且不超过 1（0.6 即 60%）",
                "utilisation",
            )
        return self.per_year / (HOURS_PER_YEAR * utilisation * (1 - waste))


def known() -> dict[str, Any]:
    """Places, kinds of card and servers with their sources."""
    return table_of("owning")


def owning(cluster: Cluster) -> Owning:
    """The yearly lines of one card of a cluster. Raises ``EstimatorError`` for impossible assumptions."""
    _checked(cluster)
    each = cluster.invested / cluster.gpus
    electricity, cooling = _power(cluster)
    staff = max(cluster.fte_per_gpu * cluster.gpus, cluster.floor_fte) / cluster.gpus
    return Owning(
        depreciation=each * (1 - cluster.residual) / cluster.life_years,
        finance=each * (1 + cluster.residual) / 2 * cluster.finance,
        maintenance=each * cluster.maintenance,
        electricity=electricity,
        cooling=cooling,
        labour=staff * cluster.salary,
        currency=cluster.currency,
    )


def assumptions(kind: str, place: str) -> dict[str, Any]:
    """The fields of a cluster of this kind of card ("consumer", "datacenter" …) in a place, in its currency."""
    table = known()
    grade = table["kinds"]["consumer" if kind in ("consumer", "laptop") else "datacenter"]
    found = {**table["places"][place], **grade}
    return {name: value for name, value in found.items() if not name.startswith("why")}


def server_of(gpu: str, place: str) -> dict[str, Any] | None:
    """The dated price of a server with a card in a place; None where none is known."""
    return next((row for row in known()["servers"] if (row["gpu"], row["place"]) == (gpu, place)), None)


def break_even_utilisation(cost_per_hour: float, rent_per_hour: float) -> float:
    """The share of hours above which owning is cheaper; above 1: never. Both per card-hour, in one currency."""
    if rent_per_hour <= 0:
        raise EstimatorError("the rental price must be above 0", "租用价格必须大于 0", "price_usd_per_hour")
    return cost_per_hour / rent_per_hour


def payback_months(
    price: float, rent_per_hour: float, utilisation: float, running_per_used_hour: float, fixed_per_month: float = 0.0
) -> float | None:
    """Months until the rent saved has paid the price; None when it never does. One card, one currency."""
    saved = (rent_per_hour - running_per_used_hour) * utilisation * HOURS_PER_MONTH - fixed_per_month
    return price / saved if saved > 0 else None


def _power(cluster: Cluster) -> tuple[float, float]:
    """Electricity of the machine and of its cooling, per card and year."""
    if cluster.colocation_per_kw_month is not None:
        return cluster.colocation_per_kw_month * cluster.kw * 12 / cluster.gpus, 0.0
    drawn = cluster.kw * cluster.load * HOURS_PER_YEAR * cluster.price_per_kwh / cluster.gpus
    return drawn, drawn * (cluster.pue - 1)


def _checked(cluster: Cluster) -> None:
    if cluster.pue < 1:
        raise EstimatorError(
            f"PUE {cluster.pue:g} is below 1; it is the whole room's power over the machines', 1.54 on average",
            f"PUE {cluster.pue:g} 小于 1；它是机房总功耗与设备功耗之比，平均 1.54",
            "pue",
        )
    for name in ("price", "gpus", "kw", "life_years"):
        if getattr(cluster, name) <= 0:
            raise EstimatorError(f"{name} must be above 0", f"{name} 必须大于 0", name)
    if not 0 <= cluster.residual < 1:
        raise EstimatorError("residual must lie from 0 to below 1", "残值率应在 0 到 1 之间", "residual")
