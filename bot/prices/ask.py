"""A price question answered from what is known now."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bot.folders import data_folder
from bot.prices.claims import Claim
from bot.prices.current import current_market, history_in
from bot.prices.view import Lows, PriceAnswer, Wanted, gpus_meant, prices

if TYPE_CHECKING:
    from bot.prices.history import History

HISTORY_DAYS = 30


def answered_prices(
    gpus: Sequence[str], lang: str, region: str = "", spot: bool | None = None, currency: str = "",
    claim: Claim | None = None,
) -> PriceAnswer:  # fmt: skip
    """The answer for cards as people name them. Raises EstimatorError, for an unknown currency as well."""
    market = current_market()
    names = tuple(dict.fromkeys(name for gpu in gpus for name in gpus_meant(gpu, market.offers)))
    wanted = Wanted(names, region, spot, currency_of(lang, currency), claim=claim)
    now = datetime.now(UTC)
    with history_in(data_folder()) as history:
        lows = lows_of(history, names[:1], now) if history else {}
    return prices(wanted, market.offers, now, own=market.purchases, lows=lows)


def lows_of(history: "History", gpus: Sequence[str], now: datetime) -> dict[str, Lows]:
    """The lowest prices on demand of some cards, by class and day of the last month."""
    from bot.prices.lines import daily_lows  # without a history nothing is drawn

    since = now - timedelta(days=HISTORY_DAYS)
    return {gpu: daily_lows(history.steps(gpu, False, since.timestamp(), now.timestamp()), since, now) for gpu in gpus}


def currency_of(lang: str, chosen: str = "") -> str:
    """The currency that is asked for, the one set by VRAM_BOT_CURRENCY, or that of the language."""
    return (chosen or os.environ.get("VRAM_BOT_CURRENCY") or ("CNY" if lang == "zh" else "USD")).strip().upper()
