"""The card table: what is known of each GPU, and the real memory of a class of cards."""

import csv
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from estimator.datafiles import read_text

GIB = 2**30
OLDEST_CAPABILITY = 7.0
"""Compute capability below which no current torch runs; older cards do not speak for the memory of their class."""


class Card(NamedTuple):
    """A GPU of the table.

    Memory in GiB as torch sees it, from the lowest to the highest value met; ``nominal`` lists the sizes in GB it is
    sold with. Flags are yes, no, partial, triton-only or own-kernel.
    """

    name: str
    aliases: tuple[str, ...]
    vendor: str
    kind: str
    arch: str
    compute_capability: str
    nominal: tuple[int, ...]
    low: float | None
    high: float | None
    basis: str
    bf16: str
    fp8: str
    flash2: str
    flash3: str
    notes: str
    bus: str = ""
    fabric: float = 0.0
    """GB/s of NVLink or another link of its own between cards, 0 without."""


@cache
def cards() -> tuple[Card, ...]:
    """Every card of the table, in its order."""
    return tuple(_card(row) for row in csv.DictReader(read_text("gpus.csv").splitlines()))


def _card(row: dict[str, str]) -> Card:
    return Card(
        name=row["name"],
        aliases=tuple(row["aliases"].split("|")) if row["aliases"] else (),
        vendor=row["vendor"],
        kind=row["class"],
        arch=row["arch"],
        compute_capability=row["compute_capability"],
        nominal=_nominal(row["memory_gb_marketed"]),
        low=float(row["torch_total_gib_min"]) if row["torch_total_gib_min"] else None,
        high=float(row["torch_total_gib_max"]) if row["torch_total_gib_max"] else None,
        basis=row["torch_total_basis"],
        bf16=row["bf16_native"],
        fp8=row["fp8_native"],
        flash2=row["flash_attn2"],
        flash3=row["flash_attn3"],
        notes=row["notes"],
        bus=row["bus"],
        fabric=float(row["nvlink_or_fabric_gbs"] or 0),
    )


def _nominal(text: str) -> tuple[int, ...]:
    return tuple(round(float(part)) for part in text.replace("..", "/").split("/") if part)


@cache
def _virtual() -> frozenset[str]:
    """Source codes of totals that were read inside a virtual GPU's profile, not on a card."""
    listed = csv.reader(read_text("sources.csv").splitlines()[1:])
    return frozenset(code for code, source in listed if "vGPU" in source)


def _speaks_for_class(card: Card) -> bool:
    current = card.vendor == "NVIDIA" and float(card.compute_capability or 0) >= OLDEST_CAPABILITY
    return current and card.kind != "unified" and card.low is not None and card.basis not in _virtual()


@cache
def class_totals(nominal: int) -> tuple[float, float] | None:
    """The smallest and the largest real total, in GiB, of NVIDIA cards sold with ``nominal`` GB."""
    totals = list(_totals(nominal))
    return (min(low for low, _high in totals), max(high for _low, high in totals)) if totals else None


@cache
def class_middle(nominal: int) -> float | None:
    """The real total, in GiB, that half of those cards reach: what one of which only the size is known may have."""
    from statistics import median  # most cards are named

    totals = [(low + high) / 2 for low, high in _totals(nominal)]
    return median(totals) if totals else None


def _totals(nominal: int) -> Iterator[tuple[float, float]]:
    for card in cards():
        if _speaks_for_class(card) and card.nominal == (nominal,) and card.low and card.high:
            yield card.low, card.high


APPLE_CHIP = re.compile(r"(?:macbook(?:pro|air)?|mac(?:mini|studio|pro)?|imac(?:pro)?)?m([1-9])(pro|max|ultra)?")
MACS = {
    "macstudio": "Mac Studio", "macmini": "Mac mini", "macpro": "Mac Pro", "macbook": "MacBook", "mac": "Mac",
    "macbookpro": "MacBook Pro", "macbookair": "MacBook Air", "imac": "iMac", "silicon": "Apple silicon",
}  # fmt: skip


def apple_chip(core: str) -> Card | None:
    """An Apple chip that the table does not list: only its memory counts, so any listed one speaks for it."""
    named = APPLE_CHIP.fullmatch(core)
    if named is None and core not in MACS:
        return None
    listed = next(card for card in cards() if card.vendor == "Apple")
    if named is None:
        return listed._replace(name=MACS[core], nominal=(16, 32))
    name = " ".join(filter(None, ("Apple", f"M{named[1]}", (named[2] or "").title())))
    return listed._replace(name=name, nominal=(16, 32) if named[2] else (8, 16))


@cache
def smallest_share() -> float:
    """The smallest part of its nominal size that any current card really has, for sizes that no card is sold with."""
    found = [card.low / card.nominal[0] for card in cards() if _speaks_for_class(card) and card.low]
    return min(found)
