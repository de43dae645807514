"""A price question answered from what is known now."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.folders import data_folder
from bot.prices.claims import Claim
from bot.prices.current import FILE, current_market
from bot.prices.view import PriceAnswer, Wanted, gpus_meant, prices

HISTORY_DAYS = 30


def answered_prices(
    gpus: Sequence[str], lang: str, region: str = "", spot: bool | None = None, currency: str = "",
    claim: Claim | None = None,
) -> PriceAnswer:  # fmt: skip
    """The answer for cards as people name them. Raises EstimatorError and UnknownCurrency."""
    market = current_market()
    names = tuple(dict.fromkeys(name for gpu in gpus for name in gpus_meant(gpu, market.offers)))
    wanted = Wanted(names, region, spot, currency_of(lang, currency), claim=claim)
    now = datetime.now(UTC)
    return prices(wanted, market.offers, now, own=market.purchases, lows=lows_of(names[:1], data_folder(), now))


def lows_of(gpus: Sequence[str], folder: Path, now: datetime) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """The lowest prices on demand of some cards, by class and day of the last month; empty without a history."""
    if not (folder / FILE).exists():
        return {}
    from bot.prices.history import History
    from bot.prices.lines import daily_lows

    since = now - timedelta(days=HISTORY_DAYS)
    history = History(folder / FILE)
    try:
        steps = {gpu: history.steps(gpu, False, since.timestamp(), now.timestamp()) for gpu in gpus}
    finally:
        history.close()
    return {gpu: daily_lows(found, since, now) for gpu, found in steps.items()}


def currency_of(lang: str, chosen: str = "") -> str:
    """The currency that is asked for, the one set by VRAM_BOT_CURRENCY, or that of the language."""
    return (chosen or os.environ.get("VRAM_BOT_CURRENCY") or ("CNY" if lang == "zh" else "USD")).strip().upper()
