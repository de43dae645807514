"""The optimizer of a plan, from the library that has it."""

from typing import Any

import torch

from bot.tracing.fakes import quantiser
from bot.tracing.plan import Plan

RATE = 1e-4


def optimizer_of(plan: Plan, parameters: list[Any]) -> Any:
    """The optimizer over the parameters that train."""
    name, how = plan.optimizer, plan.implementation
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=RATE, fused=how == "fused", foreach=how == "foreach")
    if name == "adamw-8bit":
        return quantiser()[0].optim.AdamW8bit(parameters, lr=RATE)
    if name == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=RATE, scale_parameter=False, relative_step=False)
    return torch.optim.SGD(parameters, lr=RATE, momentum=0.9 if name == "sgd-momentum" else 0.0, foreach=True)
