"""What the card table says of a card's speed and price."""

import csv
from functools import cache

from estimator.cost.speed import Accelerator
from estimator.datafiles import read_text


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every card by its name in the catalogue."""
    return {row["name"]: _accelerator(row) for row in csv.DictReader(read_text("gpus.csv").splitlines())}


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
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
