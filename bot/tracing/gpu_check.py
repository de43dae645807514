"""The same step on a real card, for whoever has one: what PyTorch's own counters show."""

import gc
from dataclasses import dataclass
from typing import Any

from bot.tracing import packages
from bot.tracing.plan import Plan
from bot.tracing.trace import read
from estimator.errors import EstimatorError
from estimator.schema import Run


@dataclass(frozen=True, slots=True)
class Measured:
    """Peaks in bytes, the card, and the versions that ran."""

    allocated: int
    reserved: int
    card: str
    stack: dict[str, str | None]


class Nobody:
    """Watches nothing: on a card PyTorch counts by itself."""

    step, backward = 0, False

    def enter(self, phase: str) -> None:
        """Nothing."""

    def tag(self, tensor: Any, item: str, only: str | None = None) -> None:
        """Nothing."""

    def keep(self) -> None:
        """Nothing."""


def measure(run: Run) -> Measured:
    """``torch.cuda.max_memory_allocated`` and ``_reserved`` over two steps. Raises EstimatorError without a card."""
    plan = read(run)[2]
    import torch

    if not torch.cuda.is_available():
        raise EstimatorError(
            "--gpu-check runs on a CUDA card and this torch sees none: leave it out to trace on fake tensors",
            "--gpu-check 需要 CUDA 显卡，而当前 torch 没有检测到：去掉该选项即可在假张量上跟踪",
        )
    model = prepared(plan, "cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    stepped(plan, model, "cuda")
    return Measured(
        torch.cuda.max_memory_allocated(),
        torch.cuda.max_memory_reserved(),
        torch.cuda.get_device_name(),
        packages.versions(),
    )


def prepared(plan: Plan, device: str) -> Any:
    """The model on a device, with real tensors of random values."""
    from bot.tracing import models

    model = models.adapted(plan, models.built(plan, models.config_of(plan), device), device)
    gc.collect()
    return model


def stepped(plan: Plan, model: Any, device: str) -> None:
    """Two training steps, or a generation."""
    from bot.tracing.step import Training, generate

    if plan.training:
        Training(plan, model, Nobody(), device).run()
    else:
        generate(plan, model, Nobody(), device)
