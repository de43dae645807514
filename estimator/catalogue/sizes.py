"""Which sizes of card there are, for runs that name none or need a larger one."""

from functools import cache

from estimator.catalogue.cards import cards, class_totals
from estimator.catalogue.gpus import find_gpu


@cache
def _usable_by_size() -> tuple[tuple[int, int], ...]:
    """Every size in GB that NVIDIA cards are sold with, and the bytes that the poorest of them really has."""
    sizes = sorted({size for card in cards() if card.vendor == "NVIDIA" for size in card.nominal if class_totals(size)})
    return tuple((size, find_gpu(f"{size}GB").usable_low) for size in sizes)


def sizes_gb(needed: int) -> list[int]:
    """The sizes of card, in GB, that surely hold so many bytes, the smallest first."""
    return [size for size, usable in _usable_by_size() if usable >= needed]
