"""Which sizes of card there are, for runs that name none or need a larger one."""

from functools import cache

from estimator.catalogue.cards import cards, class_totals
from estimator.catalogue.gpu_match import GpuMatch
from estimator.catalogue.gpus import find_gpu
from estimator.errors import EstimatorError


@cache
def _usable_by_size() -> tuple[tuple[int, int], ...]:
    """Every size in GB that NVIDIA cards are sold with, and the bytes that the poorest of them really has."""
    sizes = sorted({size for card in cards() if card.vendor == "NVIDIA" for size in card.nominal if class_totals(size)})
    return tuple((size, find_gpu(f"{size}GB").usable_low) for size in sizes)


def sizes_gb(needed: int) -> list[int]:
    """The sizes of card, in GB, that surely hold so many bytes, the smallest first."""
    return [size for size, usable in _usable_by_size() if usable >= needed]


@cache
def _of_maker(vendor: str) -> tuple[tuple[int, str], ...]:
    """A maker's cards that are computed, with the bytes that each really has, the smallest first."""
    named = [
        card.name if len(card.nominal) == 1 else f"{card.name} {size}GB"
        for card in cards()
        for size in card.nominal
        if card.vendor == vendor
    ]
    return tuple(sorted((card.usable_low, card.name) for card in filter(None, map(_known, named))))


def _known(name: str) -> GpuMatch | None:
    try:
        return find_gpu(name)
    except EstimatorError:
        return None


def of_maker(vendor: str, needed: int) -> list[str]:
    """A maker's cards that surely hold so many bytes, the smallest first."""
    return [name for usable, name in _of_maker(vendor) if usable >= needed]
