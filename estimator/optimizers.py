"""Optimizers by name: what they keep on the card, what they page to host memory, and the peak of their step.

States in ``optimizer_states``, temporaries of the step in ``optimizer_steps``; the rules below put them together.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from estimator import optimizer_states as states
from estimator import optimizer_steps as steps
from estimator.errors import EstimatorError
from estimator.optimizer_states import Choice
from estimator.step.program import rounded
from estimator.trainables import Group, Trainable

PAGED_FROM = 100_000
"""bitsandbytes pages state buffers of tensors with at least this many elements (get_state_buffer)."""


class OptimizerMemory(NamedTuple):
    """Bytes: states on the card, states in host memory (paged), and the step's largest temporaries.

    ``refresh`` is the peak of a step that also computes new projectors (GaLore: the first, then every 200th).
    """

    states: int
    paged: int
    temporaries: int
    why: str
    why_zh: str
    refresh: int = 0


Sizes = Callable[[Trainable, Choice], list[int]]
Peak = Callable[[Iterable[Group], Choice], int]


def _none(*_: object) -> list[int]:
    return []


def _nothing(_: Iterable[Group], __: Choice) -> int:
    return 0


class Rule(NamedTuple):
    """Moments (they can be paged), what else is kept, the step's peak, bytes kept once, and the reason."""

    moments: Sizes
    why: str
    why_zh: str
    others: Sizes = _none
    peak: Peak = _nothing
    once: int = 0
    refresh: Peak = _nothing


def memory_of(choice: Choice, groups: Iterable[Group]) -> OptimizerMemory:
    """States and temporaries of an optimizer over the trainable tensors in their order, in bytes."""
    known = tuple((times, tuple(one for one in tensors if not one.idle)) for times, tensors in groups)
    rule = rule_of(choice.name)
    moments = others = paged = 0
    for times, tensors in known:
        for tensor in tensors:
            size = times * sum(map(rounded, rule.moments(tensor, choice)))
            if choice.name.startswith("paged-") and tensor.numel >= PAGED_FROM:
                paged += times * sum(rule.moments(tensor, choice))
            else:
                moments += size
            others += times * sum(map(rounded, rule.others(tensor, choice)))
    kept = moments + others + (rule.once if _any_quantised(known, choice) else 0)
    clipping = steps.clipping(known) if choice.clipping and choice.name not in FUSED_INTO_BACKWARD else 0
    temporaries = max(clipping, rule.peak(known, choice))
    why, why_zh = _reason(rule, choice)
    if paged:
        why, why_zh = f"{why}; {paged:,} B of them paged to host memory", f"{why_zh}；其中 {paged:,} 字节分页到主机内存"
    return OptimizerMemory(kept, paged, temporaries, why, why_zh, rule.refresh(known, choice))


def _any_quantised(groups: Iterable[Group], choice: Choice) -> bool:
    """Whether a state is kept in 8 bit: bitsandbytes makes its tables of levels with the first such state."""
    return any(states.quantised(tensor, choice) for _, tensors in groups for tensor in tensors)


def _reason(rule: Rule, choice: Choice) -> tuple[str, str]:
    """The rule's reason, with the rank of optimizers that project."""
    if not choice.name.startswith(("galore", "apollo")):
        return rule.why, rule.why_zh
    return f"{rule.why}, rank {choice.rank}", f"{rule.why_zh}，秩 {choice.rank}"


FUSED_INTO_BACKWARD = ("lomo", "adalomo")
"""Optimizers that update a parameter as soon as the next gradient is made."""


def rule_of(name: str) -> Rule:
    """The rule of an optimizer; "paged-" and "-32bit" are bitsandbytes' variants."""
    found = RULES.get(name.removeprefix("paged-"))
    if found is None and name.startswith("paged-"):
        found = RULES.get(name.removeprefix("paged-") + "-32bit")
    if found is None:
        shown = ", ".join(sorted(RULES))
        raise EstimatorError(
            f"optimizer {name[:40]!r} is not known; known are {shown}",
            f"未知的优化器 {name[:40]!r}；支持：{shown}",
            "optimizer",
        )
    return found


def _adam_moments(tensor: Trainable, choice: Choice) -> list[int]:
    return states.copies(tensor, 2)


def _adam_counters(tensor: Trainable, choice: Choice) -> list[int]:
    """Fused AdamW keeps its step counter on the card."""
    return [states.SCALAR] if choice.implementation == "fused" else []


def _adam_peak(groups: Iterable[Group], choice: Choice) -> int:
    """Foreach makes the square roots of all tensors at once; the loop works on one by one; fused needs nothing."""
    if choice.implementation == "foreach":
        return sum(times * rounded(tensor.bytes) for times, tensors in groups for tensor in tensors)
    return steps.peak_of(steps.adam_loop, groups, choice) if choice.implementation == "for-loop" else 0


TABLES = 1024
"""bitsandbytes' table of 256 levels, one for signed and one for unsigned moments."""

ADAM = Rule(_adam_moments, "two moments in the parameter's type", "两个动量，与参数同精度", _adam_counters, _adam_peak)
ADAM_32BIT = Rule(
    lambda t, _: states.full_copies(t, 2), "two fp32 moments (bitsandbytes)", "两个 fp32 动量（bitsandbytes）"
)
ADAM_8BIT = Rule(
    lambda t, c: states.moments_8bit(t, c, 2), "two moments of 1 B and a scale per 256 elements",
    "两个 8 位动量，每 256 个元素一个缩放系数", lambda t, c: states.scales_8bit(t, c, 2), once=2 * TABLES,
)  # fmt: skip
LION = Rule(lambda t, _: states.full_copies(t, 1), "one fp32 momentum (bitsandbytes)", "一个 fp32 动量（bitsandbytes）")
RULES: dict[str, Rule] = {
    "adamw": ADAM,
    "adam": ADAM,
    "adamw-32bit": ADAM_32BIT,
    "adamw-bnb-32bit": ADAM_32BIT,
    "adam-32bit": ADAM_32BIT,
    "adamw-8bit": ADAM_8BIT,
    "adam-8bit": ADAM_8BIT,
    "adamw-torchao-8bit": Rule(
        lambda t, _: states.torchao(t, 8, 256), "two moments of 1 B, a scale per 256 elements and own tables",
        "两个 8 位动量，每 256 个元素一个缩放系数，各自带码表",
    ),
    "adamw-4bit": Rule(
        lambda t, _: states.torchao(t, 4, 128), "two moments of 4 bit and a scale per 128 elements",
        "两个 4 位动量，每 128 个元素一个缩放系数",
    ),
    "ademamix": Rule(
        lambda t, _: states.full_copies(t, 3), "three fp32 moments (bitsandbytes)", "三个 fp32 动量（bitsandbytes）"
    ),
    "ademamix-8bit": Rule(
        lambda t, c: states.moments_8bit(t, c, 3), "three moments of 1 B and a scale per 256 elements",
        "三个 8 位动量，每 256 个元素一个缩放系数", lambda t, c: states.scales_8bit(t, c, 3), once=2 * TABLES,
    ),
    "adafactor": Rule(
        _none, "one fp32 row and column sum per matrix", "每个矩阵只保留行和与列和（fp32）",
        lambda t, _: [*states.factored(t), states.SCALAR], steps.one_pass(steps.adafactor),
    ),
    "sgd": Rule(_none, "no states", "无状态"),
    "sgd-momentum": Rule(lambda t, _: states.copies(t, 1), "one momentum", "一个动量"),
    "lion": LION,
    "lion-32bit": LION,
    "lion-8bit": Rule(
        lambda t, c: states.moments_8bit(t, c, 1), "one momentum of 1 B", "一个 8 位动量",
        lambda t, c: states.scales_8bit(t, c, 1), once=TABLES,
    ),
    "lion-pytorch": Rule(
        lambda t, _: states.copies(t, 1), "one momentum in the parameter's type", "一个动量，与参数同精度",
        peak=steps.one_pass(steps.lion),
    ),
    "muon": Rule(
        lambda t, _: states.muon(t), "one momentum for hidden matrices, two for the rest",
        "隐藏层矩阵一个动量，其余两个",
        peak=steps.one_pass(steps.muon),
    ),
    "adam-mini": Rule(
        states.adam_mini, "one momentum, and one second moment per head or row", "一个动量，二阶矩每头或每行一个",
        peak=steps.one_pass(steps.adam_mini),
    ),
    "galore": Rule(
        states.galore, "moments of the projected gradients and the projectors", "投影梯度的动量与投影矩阵",
        peak=steps.two_passes(steps.galore), refresh=steps.two_passes(steps.refresh),
    ),
    "galore-8bit": Rule(
        states.galore_8bit, "8-bit moments of the projected gradients and the projectors",
        "投影梯度的 8 位动量与投影矩阵",
        peak=steps.two_passes(steps.galore_8bit), once=2 * TABLES, refresh=steps.two_passes(steps.refresh),
    ),
    "galore-adafactor": Rule(
        _none, "row and column sums of the projected gradients and the projectors", "投影梯度的行列和与投影矩阵",
        states.galore_adafactor, steps.two_passes(steps.galore_adafactor), refresh=steps.two_passes(steps.refresh),
    ),
    "apollo": Rule(
        states.apollo, "moments of the projected gradients and the projectors", "投影梯度的动量与投影矩阵",
        peak=steps.two_passes(steps.apollo),
    ),
    "lomo": Rule(_none, "no states: the update is fused into the backward", "无状态：更新融合在反向过程中"),
    "adalomo": Rule(
        _none, "row and column sums; the update is fused into the backward", "行和与列和；更新融合在反向过程中",
        lambda t, _: states.factored(t),
    ),
    "badam": Rule(
        lambda t, _: states.full_copies(t, 3), "fp32 copy and two moments of the block that trains",
        "正在训练的块：fp32 副本与两个动量",
        peak=steps.badam,
    ),
}  # fmt: skip
