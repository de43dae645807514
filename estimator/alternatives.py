"""What the other choice would need, where the loss or checkpointing was assumed and not asked for.

Both move a small model by gigabytes, so an answer that assumed one says what the other takes.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from estimator.schema import Alternative, Assumption, Range
from estimator.setting import Setting

Measure = Callable[[Setting], tuple[int, Range, Any]]
"""Setting to allocated peak, device range and verdict."""

PLAIN = ("the plain loss, with full logits", "若使用普通损失（完整 logits）")
TILED = ("a chunked loss, without full logits", "若使用分块损失（不产生完整 logits）")
OFF = ("no gradient checkpointing", "若关闭梯度检查点")
ON = ("gradient checkpointing", "若开启梯度检查点")


def alternatives(setting: Setting, assumed: Iterable[Assumption], measure: Measure) -> list[Alternative]:
    """One entry per assumption that matters this much."""
    fields = {assumption.field for assumption in assumed}
    found = []
    for field, value, texts in _others(setting):
        if field in fields:
            name = {"gradient_checkpointing": "checkpointing"}.get(field, field)
            other = setting._replace(regime=replace(setting.regime, **{name: value}))
            allocated, shown, verdict = measure(other)
            found.append(
                Alternative(
                    change={field: value}, why=texts[0], why_zh=texts[1], allocated_peak=allocated, device_peak=shown, verdict=verdict
                )
            )
    return found


def _others(setting: Setting) -> Iterable[tuple[str, str, tuple[str, str]]]:
    regime = setting.regime
    if not regime.training:
        return
    if regime.loss == "standard":
        yield "loss", "chunked", TILED
    else:
        yield "loss", "standard", PLAIN
    if regime.checkpointing == "none":
        yield "gradient_checkpointing", "full", ON
    else:
        yield "gradient_checkpointing", "none", OFF
