"""Whether a message asks what a card costs, rather than what a run on it costs."""

from typing import Any

from bot.intake.asked import AMOUNTS, Asked
from bot.intake.claims import currency_in
from bot.intake.sheet import Sheet
from bot.prices.claims import Claim

OF_A_RUN = ("model", "size", "method", "stage", "micro_batch", "seq_len", "closed", "family")
"""What is said of a run: with any of it, money is asked of the run."""
MONEY = frozenset({"price", "cost"})
HOW_MUCH = frozenset({"need_memory"})


def rents_in(sheet: Sheet, asked: Asked) -> dict[str, Any] | None:
    """The region and kind that are asked about, None where it is no question of a card's price."""
    if any(sheet.values(name) for name in (*OF_A_RUN, *AMOUNTS)):
        return None
    rent = sheet.has("rent")
    named = asked.marked and any(one.gpu for one in sheet.values("hardware"))
    money = bool(sheet.questions & MONEY) or (rent and (named or bool(sheet.questions & HOW_MUCH)))
    if not money or not (sheet.values("hardware") or (rent and asked.domain)):
        return None
    return _asked_for(sheet)


def claimed_rents(sheet: Sheet, asked: Asked, claim: Claim) -> dict[str, Any] | None:
    """What is asked where a price of a card, or of renting any, is said, and nothing of a run.

    ``sheet`` and ``asked`` are of the message without the price.
    """
    billed = bool(sheet.values("hours")) and bool(sheet.questions & MONEY)
    of_cards = bool(sheet.values("hardware")) or (sheet.has("rent") and asked.domain) or rents_in(sheet, asked)
    if billed or "own" in sheet.questions or not of_cards:
        return None
    if sheet.invalid or any(sheet.values(name) for name in (*OF_A_RUN, "samples", "epochs", "tokens")):
        return None
    return {**_asked_for(sheet), "currency": claim.currency, "claim": claim}


def _asked_for(sheet: Sheet) -> dict[str, Any]:
    """Region, kind and currency."""
    kind = next((word for word in ("spot", "on_demand") if sheet.has("rent_kind", value=word)), None)
    region = next(
        (name for name in ("US", "Europe", "CN", "Asia-Pacific", "HK", "India") if _is_named(sheet, name)), ""
    )
    return {
        "region": region,
        "spot": None if kind is None else kind == "spot",
        "currency": currency_in(sheet.text),
    }


def _is_named(sheet: Sheet, region: str) -> bool:
    return sheet.has("rent_region", value=region)
