"""When a threshold is told of: once a crossing, not again before the price was well above it. Pure."""

from typing import Literal

from bot.digest.subscription import Alert

HYSTERESIS = 0.03
"""The price must rise so far above the threshold before the next crossing counts."""
COOLDOWN_SECONDS = 86_400.0

Step = Literal["fire", "arm", "stay"]


def step(alert: Alert, usd: float | None, fired: bool, fired_at: float, now: float) -> Step:
    """What to do about an alert at the cheapest current price; None: no current price is known."""
    if usd is None:
        return "stay"
    if fired:
        return "arm" if usd > alert.below_usd * (1 + HYSTERESIS) else "stay"
    if usd < alert.below_usd and now - fired_at >= COOLDOWN_SECONDS:
        return "fire"
    return "stay"
