"""Optimizer states, and what a step holds while it runs.

Each rule is one of the optimizer's own allocations, read in torch 2.13 (torch/optim), bitsandbytes 0.50.2
(bitsandbytes/optim/optimizer.py) and transformers 5.24 (optimization.py); blocks are rounded one by one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from estimator.errors import EstimatorError
from estimator.step.program import rounded
from estimator.trainables import Trainable

SMALL = 4096
"""bitsandbytes keeps fp32 states for tensors with fewer elements (min_8bit_size)."""
QMAPS = 2 * 1024
BLOCKWISE = 256


class OptimizerMemory(NamedTuple):
    """Bytes: states on the card, states in host memory (paged), and the step's largest temporaries."""

    states: int
    paged: int
    temporaries: int
    why: str
    why_zh: str


def memory_of(name: str, implementation: str | None, tensors: Sequence[Trainable]) -> OptimizerMemory:
    """States and temporaries of an optimizer over these tensors, in bytes."""
    base, paged = (name.removeprefix("paged-"), True) if name.startswith("paged-") else (name, False)
    base = base.removesuffix("-32bit") if base.endswith("-32bit") else base
    rule = RULES.get(base)
    if rule is None:
        known = ", ".join(sorted(RULES))
        raise EstimatorError(
            f"optimizer {name[:40]!r} is not known; known are {known}", f"未知的优化器 {name[:40]!r}；支持：{known}", "optimizer"
        )
    states = sum(tensor.count * sum(rounded(size) for size in rule.states(tensor)) for tensor in tensors)
    states += rule.once if tensors else 0
    steps = _step_counters(base, implementation, tensors)
    temporaries = rule.temporaries(tensors, implementation)
    if paged:
        return OptimizerMemory(0, states, temporaries, f"{states:,} B paged to host memory", f"{states:,} 字节分页到主机内存")
    return OptimizerMemory(states + steps, 0, temporaries, rule.why, rule.why_zh)


def _step_counters(name: str, implementation: str | None, tensors: Sequence[Trainable]) -> int:
    if name in ("adamw", "adam") and implementation == "fused":
        return 512 * sum(tensor.count for tensor in tensors)
    return 0


def _copies(times: int) -> Callable[[Trainable], list[int]]:
    return lambda tensor: [tensor.numel * tensor.itemsize] * times


def _eight_bit(states: int) -> Callable[[Trainable], list[int]]:
    def sizes(tensor: Trainable) -> list[int]:
        n = tensor.numel
        if n < SMALL:
            return [4 * n] * states
        return [n, 4 * -(-n // BLOCKWISE)] * states

    return sizes


def _four_bit(tensor: Trainable) -> list[int]:
    n = tensor.numel
    if n < SMALL:
        return [n * tensor.itemsize] * 2
    return [n // 2, 4 * -(-n // 128)] * 2


def _factored(tensor: Trainable) -> list[int]:
    if len(tensor.shape) < 2:
        return [4 * tensor.numel]
    rows, columns = tensor.numel // tensor.shape[-1], tensor.numel // tensor.shape[-2]
    return [4 * rows, 4 * columns]


def _muon(tensor: Trainable) -> list[int]:
    return [tensor.numel * tensor.itemsize] * (1 if tensor.hidden else 2)


def _adam_mini(tensor: Trainable) -> list[int]:
    return [tensor.numel * tensor.itemsize, 4 * (tensor.shape[0] if len(tensor.shape) > 1 else 1)]


def _nothing(_: Trainable) -> list[int]:
    return []


def _none(_: Sequence[Trainable], __: str | None) -> int:
    return 0


def _one_copy(tensors: Sequence[Trainable], implementation: str | None) -> int:
    """foreach makes the square roots of all tensors at once; the loop makes those of one at a time."""
    if implementation == "foreach":
        return sum(tensor.count * rounded(tensor.numel * tensor.itemsize) for tensor in tensors)
    if implementation == "for-loop":
        return 2 * _largest(tensors)
    return 0


def _largest(tensors: Sequence[Trainable]) -> int:
    return max((rounded(tensor.numel * tensor.itemsize) for tensor in tensors), default=0)


def _adafactor(tensors: Sequence[Trainable], _: str | None) -> int:
    """Four fp32 copies of the largest tensor: gradient, parameter, update and its square (two when it is fp32)."""
    return max(
        (rounded(4 * tensor.numel) * (4 if tensor.itemsize < 4 else 2) for tensor in tensors), default=0
    )


def _newton_schulz(tensors: Sequence[Trainable], _: str | None) -> int:
    """bf16 update, its transpose product and two polynomials of the largest hidden matrix (torch.optim.Muon)."""
    worst = 0
    for tensor in tensors:
        if tensor.hidden and len(tensor.shape) == 2:
            small = min(tensor.shape)
            worst = max(worst, 3 * rounded(2 * tensor.numel) + 2 * rounded(2 * small * small))
    return worst


class Rule(NamedTuple):
    """States per tensor, bytes once, temporaries of the step, and the reason."""

    states: Callable[[Trainable], list[int]]
    temporaries: Callable[[Sequence[Trainable], str | None], int]
    why: str
    why_zh: str
    once: int = 0


RULES: dict[str, Rule] = {
    "adamw": Rule(_copies(2), _one_copy, "two moments in the parameter's type", "两个动量，与参数同精度"),
    "adam": Rule(_copies(2), _one_copy, "two moments in the parameter's type", "两个动量，与参数同精度"),
    "adamw-8bit": Rule(
        _eight_bit(2), _none, "two moments of 1 B and a scale per 256 elements", "两个 8 位动量，每 256 个元素一个缩放系数", QMAPS
    ),
    "adamw-4bit": Rule(_four_bit, _none, "two moments of 4 bit and a scale per 128 elements", "两个 4 位动量，每 128 个元素一个缩放系数"),
    "adafactor": Rule(_factored, _adafactor, "one fp32 row and column sum per matrix", "每个矩阵只保留行和与列和（fp32）"),
    "sgd": Rule(_nothing, _none, "no states", "无状态"),
    "sgd-momentum": Rule(_copies(1), _none, "one momentum", "一个动量"),
    "lion": Rule(_copies(1), _none, "one momentum", "一个动量"),
    "lion-8bit": Rule(_eight_bit(1), _none, "one momentum of 1 B", "一个 8 位动量", QMAPS // 2),
    "muon": Rule(_muon, _newton_schulz, "one momentum for hidden matrices, two for the rest", "隐藏层矩阵一个动量，其余两个"),
    "adam-mini": Rule(_adam_mini, _none, "one momentum, and one second moment per row", "一个动量，二阶矩每行一个"),
    "lomo": Rule(_nothing, _none, "no states: the update is fused into the backward", "无状态：更新融合在反向过程中"),
    "adalomo": Rule(_factored, _none, "row and column sums; the update is fused into the backward", "行和与列和；更新融合在反向过程中"),
}
