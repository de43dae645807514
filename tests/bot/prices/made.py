"""Offers made by hand."""

from typing import Any

from bot.prices.offers import Offer

ONE = Offer(
    gpu="RTX 4090",
    provider="acme",
    provider_class="marketplace",
    instance="one",
    gpu_count=1,
    region="eu-1",
    region_class="Europe",
    spot=False,
    usd_per_gpu_hour=0.5,
    native_price=0.5,
    currency="USD",
    as_of="2026-11-30",
    source="a test",
)


def made(price: float = 0.5, **changes: Any) -> Offer:
    """An offer of an RTX 4090 at a price in USD."""
    return ONE._replace(usd_per_gpu_hour=price, native_price=price, **changes)
