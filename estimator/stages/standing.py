"""Models that stand beside the policy during the whole step: a reference, a reward model, a value model."""

from dataclasses import replace
from typing import NamedTuple

from estimator.architecture import Architecture, Inventory
from estimator.step.regime import Regime
from estimator.weights import weights


class Standing(NamedTuple):
    """A model's bytes on the card, under the item of the breakdown, with the reason in both languages."""

    item: str
    bytes: int
    why: str
    why_zh: str


def standing_models(arch: Architecture, parts: Inventory, regime: Regime, shards: int = 1) -> tuple[Standing, ...]:
    """What the step of ``regime`` keeps loaded beside the policy; of ``shards`` cards, one card's part."""
    if regime.reference != "model":
        return ()
    frozen = replace(regime, adapter=None, trainable="none")
    held = weights(arch, parts, frozen)
    count = f"{held.parameters:,}"
    return (
        Standing(
            "reference_model",
            -(-held.bytes // shards),
            f"a frozen copy of the model, {count} parameters, for the reference log-probabilities",
            f"冻结的参考模型，{count} 个参数，用于计算参考对数概率",
        ),
    )
