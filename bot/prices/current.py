"""The offers that are known now."""

from bot.prices.offers import Offer
from bot.prices.snapshot import snapshot_offers


def current_offers() -> tuple[Offer, ...]:
    """What the sources said last, or the embedded snapshot where there is nothing newer."""
    return snapshot_offers()
