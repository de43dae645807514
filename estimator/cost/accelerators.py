"""What the card table says of a card's speed and price."""

import csv
import re
from dataclasses import replace
from functools import cache

from estimator.catalogue import GpuMatch
from estimator.cost.speed import Accelerator
from estimator.datafiles import read_text

_SLICE = re.compile(r"(.+) MIG (\d)g\.")
SLICES = 7
"""Compute slices of a card that MIG divides."""


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every card by its name in the catalogue."""
    return {row["name"]: _accelerator(row) for row in csv.DictReader(read_text("gpus.csv").splitlines())}


def accelerator_of(gpu: GpuMatch) -> Accelerator | None:
    """A card's speed; a MIG slice has its sevenths of it. None for a size without a card's name."""
    known = accelerators()
    if gpu.name in known:
        return known[gpu.name]
    if part := _SLICE.match(gpu.name):
        whole = next((card for name, card in known.items() if name.startswith(part[1].rpartition(" ")[0])), None)
        return _part(whole, gpu, int(part[2]) / SLICES) if whole else None
    near = (card for name, card in known.items() if gpu.name.startswith(name))
    return next((replace(card, name=gpu.name, memory_gb=gpu.nominal_gb) for card in near), None)


def _part(card: Accelerator, gpu: GpuMatch, share: float) -> Accelerator:
    peak = card.peak_tflops * share if card.peak_tflops else None
    read = card.bandwidth_gbs * share if card.bandwidth_gbs else None
    return replace(
        card, name=gpu.name, memory_gb=gpu.nominal_gb, peak_tflops=peak, bandwidth_gbs=read, price_usd=None, tdp_w=None
    )


def _accelerator(row: dict[str, str]) -> Accelerator:
    sizes = [float(part) for part in row["memory_gb_marketed"].replace("..", "/").split("/") if part]
    return Accelerator(
        name=row["name"],
        arch=row["arch"],
        kind=row["class"],
        memory_gb=min(sizes, default=0.0),
        peak_tflops=_number(row["bf16_dense_tflops"]) or _number(row["fp16_dense_tflops"]),
        bandwidth_gbs=_number(row["bandwidth_gbs"]),
        price_usd=_number(row["street_usd"]),
        tdp_w=_number(row["tdp_w"]),
        price_as_of=row["street_asof"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
