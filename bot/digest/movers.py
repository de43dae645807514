"""What changed between two times: only offers that stood at both are compared. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.prices.checks import group_of
from bot.prices.offers import Offer
from bot.prices.ranking import middle

SMALLEST = 0.01
"""Moves below 1 % are no news."""
ENOUGH_MATCHED = 3
"""Offers from which on the move of a class is told."""
MOST_SINGLE, MOST_GROUPS = 6, 6

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """An offer that costs something else than before; ``change`` is a fraction."""

    offer: Offer
    before_usd: float
    change: float


@dataclass(frozen=True, slots=True)
class GroupMove:
    """The median move of the offers of a card, class and kind that stood at both times."""

    gpu: str
    provider_class: str
    spot: bool
    change: float
    n_matched: int


def moves(before: Mapping[Key, Offer], after: Mapping[Key, Offer]) -> list[Move]:
    """Every offer that stood at both times, believed at both, with its change."""
    return [
        Move(offer, before[key].usd_per_gpu_hour, offer.usd_per_gpu_hour / before[key].usd_per_gpu_hour - 1)
        for key, offer in after.items()
        if key in before and offer.quality == before[key].quality == "ok" and offer.provider_class != "index"
    ]


def single_moves(found: Iterable[Move]) -> list[Move]:
    """The largest moves, one for each provider, card and kind."""
    best: dict[tuple[str, str, bool], Move] = {}
    for move in found:
        key = (move.offer.provider, move.offer.gpu, move.offer.spot)
        if abs(move.change) >= SMALLEST and (key not in best or abs(move.change) > abs(best[key].change)):
            best[key] = move
    return sorted(best.values(), key=lambda move: -abs(move.change))[:MOST_SINGLE]


def group_moves(found: Iterable[Move]) -> list[GroupMove]:
    """The median of the moves of each card, class and kind with three matched offers or more."""
    grouped: dict[tuple[str, str, bool], list[float]] = {}
    for move in found:
        grouped.setdefault(group_of(move.offer), []).append(move.change)
    told = [GroupMove(*key, middle(changes), len(changes)) for key, changes in grouped.items()]
    wanted = [one for one in told if one.n_matched >= ENOUGH_MATCHED and abs(one.change) >= SMALLEST]
    return sorted(wanted, key=lambda one: -abs(one.change))[:MOST_GROUPS]
