"""What the other choice would need, where the loss or checkpointing was assumed and not asked for.

Both move a small model by gigabytes, so an answer that assumed one says what the other takes.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from estimator.schema import Alternative, Assumption, Range, Verdict
from estimator.setting import Setting
from estimator.stack import LAST_BEFORE_5
from estimator.step.regime import Regime

Measure = Callable[[Setting], tuple[int, Range, Verdict | None]]
"""Setting to allocated peak, device range and verdict."""

ONE_LOSS = ("reward", "embed", "orpo", "simpo", "ppo")
"""Stages whose trainers know one way to their loss."""
PLAIN = ("the plain loss, with full logits", "若使用普通损失（完整 logits）")
TILED = ("a chunked loss, without full logits", "若使用分块损失（不产生完整 logits）")
OFF = ("no gradient checkpointing", "若关闭梯度检查点")
ON = ("gradient checkpointing", "若开启梯度检查点")
PACKED = (
    f"transformers {LAST_BEFORE_5}, which packs the experts too",
    f"若用 transformers {LAST_BEFORE_5}（专家也会量化）",
)


class Other(NamedTuple):
    """The choice that was not assumed: its field and value, the regime with it, and how it is called."""

    field: str
    value: Any
    regime: Regime
    why: str
    why_zh: str


def alternatives(
    setting: Setting, older: Other | None, assumed: Iterable[Assumption], measure: Measure
) -> list[Alternative]:
    """One entry per assumption that matters this much; ``older``: see ``packing``."""
    fields = {assumption.field for assumption in assumed}
    others = [other for other in _others(setting.regime) if other.field in fields]
    others += [older] if older else []
    return [_measured(setting, other, measure) for other in others]


def packing(stated: Mapping[str, str | None] | None, regime: Regime) -> Other:
    """The transformers that packs experts too, beside the versions that the run states of other packages."""
    return Other("stack", {**(stated or {}), "transformers": LAST_BEFORE_5}, regime, *PACKED)


def _measured(setting: Setting, other: Other, measure: Measure) -> Alternative:
    allocated, shown, verdict = measure(setting._replace(regime=other.regime))
    return Alternative(
        change={other.field: other.value},
        why=other.why,
        why_zh=other.why_zh,
        allocated_peak=allocated,
        device_peak=shown,
        verdict=verdict,
    )


@lru_cache(maxsize=1024)
def _others(regime: Regime) -> tuple[Other, ...]:
    if not regime.training:
        return ()
    loss, loss_texts = ("chunked", TILED) if regime.loss == "standard" else ("standard", PLAIN)
    kind, kind_texts = ("full", ON) if regime.checkpointing == "none" else ("none", OFF)
    checkpointed = Other("gradient_checkpointing", kind, regime._replace(checkpointing=kind), *kind_texts)
    if regime.stage in ONE_LOSS:
        return (checkpointed,)
    return (Other("loss", loss, regime._replace(loss=loss), *loss_texts), checkpointed)
