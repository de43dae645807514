"""The lowest price of each class, day by day, out of what was written down when prices changed. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bot.prices.offers import Offer

Step = tuple[Offer, float, float, float]
"""An offer, from when until when (seconds) it had a price, and the price in USD per GPU and hour."""


def daily_lows(steps: Iterable[Step], since: datetime, until: datetime) -> dict[str, list[tuple[str, float]]]:
    """By class, the lowest price of each day on which any of its offers had one."""
    lows: dict[str, dict[str, float]] = {}
    for offer, begin, end, usd in steps:
        if not offer.rentable:
            continue
        days = lows.setdefault(offer.provider_class, {})
        day = max(datetime.fromtimestamp(begin, UTC), since)
        last = min(datetime.fromtimestamp(end, UTC), until)
        while day.date() <= last.date():
            name = day.date().isoformat()
            days[name] = min(days.get(name, usd), usd)
            day += timedelta(days=1)
    return {name: sorted(days.items()) for name, days in lows.items()}
