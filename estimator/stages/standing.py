"""Models that stand beside the policy during the whole step: a reference, a reward model, a value model."""

from typing import NamedTuple

from estimator.architecture import Architecture, Inventory
from estimator.inventory import inventory
from estimator.stages.value import value_regime
from estimator.step.regime import Regime
from estimator.vision.held import tower_bytes
from estimator.weights import weights


class Standing(NamedTuple):
    """A model's bytes on the card, under the item of the breakdown, with the reason in both languages."""

    item: str
    bytes: int
    why: str
    why_zh: str


def standing_models(arch: Architecture, parts: Inventory, regime: Regime, shards: int = 1) -> tuple[Standing, ...]:
    """What the step of ``regime`` keeps loaded beside the policy; of ``shards`` cards, one card's part."""
    found = _tower(arch, regime, shards)
    if regime.stage == "ppo":
        found += _scorers(arch, regime, shards)
    if regime.reference != "model":
        return found
    frozen = regime._replace(adapter=None, trainable="none")
    held = weights(arch, parts, frozen)
    count = f"{held.parameters:,}"
    return (
        *found,
        Standing(
            "reference_model",
            -(-held.bytes // shards),
            f"a frozen copy of the model, {count} parameters, for the reference log-probabilities",
            f"冻结的参考模型，{count} 个参数，用于计算参考对数概率",
        ),
    )


def _scorers(arch: Architecture, regime: Regime, shards: int) -> tuple[Standing, ...]:
    """PPO's reward model, and its value model with the optimizer's two moments: both as large as the policy."""
    scored = arch._replace(head_kind="score")
    held = weights(scored, inventory(scored), value_regime(regime))
    count = f"{held.parameters:,}"
    size = -(-held.bytes // shards)
    moments = -(-2 * held.parameters * regime.itemsize // shards)
    return (
        Standing(
            "reward_model", size, f"a frozen reward model of the policy's size, {count} parameters",
            f"与策略同规模的冻结奖励模型，{count} 个参数",
        ),
        Standing(
            "value_model", size + moments, f"a trained value model of the policy's size, {count} parameters, with "
            "AdamW's two moments", f"与策略同规模的价值模型，{count} 个参数，参与训练，含 AdamW 的两个动量",
        ),
    )  # fmt: skip


def _tower(arch: Architecture, regime: Regime, shards: int) -> tuple[Standing, ...]:
    """An image tower and its projector, which transformers loads whether or not rows carry images."""
    if arch.vision is None:
        return ()
    count = f"{arch.vision.params + arch.vision.projector_params:,}"
    size = -(-tower_bytes(arch, regime) // shards)
    way = regime.tower if regime.training else "held"
    why, why_zh = WAYS["adapted" if way == "frozen" and regime.trainable != "all" else way]
    return (Standing("vision_tower", size, f"{count} parameters{why}", f"{count} 个参数{why_zh}"),)


WAYS = {
    "frozen": (", frozen (the projector trains with the model)", "，已冻结（投影层随模型训练）"),
    "adapted": (", frozen with the projector", "，与投影层一起冻结"),
    "trained": (", trained", "，参与训练"),
    "": (": loaded, but no row carries an image", "：已加载，但各行不含图像"),
    "held": (": image tower and projector", "：视觉塔与投影层"),
}
