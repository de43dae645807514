"""Solved for: the longest request, how many users, the share of the card, layers on the card, the best format."""

from collections.abc import Callable
from math import ceil

from estimator.catalogue import weight_format
from estimator.errors import EstimatorError
from estimator.serving.engines import FILES, memory_of
from estimator.serving.facts import gib
from estimator.serving.memory import Memory
from estimator.serving.plan import Plan
from estimator.serving.shown import beyond_the_pool, device

MOST_LENGTH = 1 << 24
MOST_USERS = 1 << 16
LEAST_SHARE = 0.05
MOST_SHARE = 0.97
"""A larger share of the card leaves nothing for graphs and the context."""

SHARED = ("vllm", "sglang")
"""Engines that are told their share of the card."""

GGUF_LADDER = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "Q2_K", "IQ2_XXS")
SERVER_LADDER = (None, "fp8", "awq-4bit-g128")
EXLLAMA_LADDER = ("exl2-8bpw", "exl2-6bpw", "exl2-5bpw", "exl2-4bpw", "exl2-3bpw", "exl2-2.5bpw")


def fits(plan: Plan, usable: int) -> bool:
    """Whether the run starts and surely holds what was asked for."""
    return device(plan, memory_of(plan), usable).high <= usable


def largest(holds: Callable[[int], bool], most: int, near: int = 0) -> int:
    """The largest number for which ``holds``, which does not come back once lost; 0 where not even 1 does.

    ``near``: about where it is, if that is known.
    """
    low, high = _around(holds, min(near, most)) if near > 1 else (0, 1)
    step = max(high - low, 1)
    while high <= most and holds(high):
        low, high, step = high, high + step, 2 * step
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _around(holds: Callable[[int], bool], near: int) -> tuple[int, int]:
    """A number that holds, or 0, and one not far above it that may not."""
    step = max(near >> 8, 1)
    if holds(near):
        return near, near + step
    high = near
    while high > step and not holds(high - step):
        high, step = high - step, 2 * step
    return max(high - step, 0), high


def longest_request(plan: Plan, found: Memory, usable: int) -> int:
    """Tokens of the longest request, the users as asked."""
    if found.cache.need is not None and found.filled is not None:
        return _within_the_pool(plan, found, usable, lambda need, length: need(plan.users, length), MOST_LENGTH)
    more = device(plan, memory_of(plan._replace(length=2 * plan.length)), usable).high
    near = _reached(plan.length, device(plan, found, usable).high, more, usable)
    return largest(lambda length: fits(plan._replace(length=length), usable), MOST_LENGTH, near)


def _reached(count: int, taken: int, twice: int, usable: int) -> int:
    """Where a straight line through what ``count`` and twice as many take meets the card."""
    slope = (twice - taken) / count
    return max(int(count + (usable - taken) / slope), 0) if slope > 0 else 0


def _within_the_pool(
    plan: Plan, found: Memory, usable: int, needed: Callable[[Callable[[int, int], int], int], int], most: int
) -> int:
    """The largest number whose cache surely fits the pool; 0 where the share itself is too large for the card."""
    need = found.cache.need
    if need is None or beyond_the_pool(plan, found).high > usable:
        return 0
    room = (found.left or 0) - found.uncertain[0]
    return largest(lambda number: needed(need, number) <= room, most)


def longest_alone(plan: Plan, found: Memory, usable: int, longest: int) -> int:
    """Tokens of the longest request when it is the only one, no more than engines let the model's own context be.

    An engine with a pool refuses a longer ``--max-model-len``: what it prints as the estimated maximum. ``longest`` is
    the longest with the users as asked.
    """
    if found.cache.longest is not None:
        longest = found.cache.longest
    elif plan.users > 1:
        longest = longest_request(plan._replace(users=1), found, usable)
    own = max(plan.arch.max_positions, plan.length)
    return min(longest, own) if own else longest


def most_users(plan: Plan, found: Memory, usable: int) -> int:
    """Users that surely run at once, the length as asked; their logits may lie beside the pool (SGLang)."""
    if found.cache.need is not None and found.filled is not None:
        users = _within_the_pool(plan, found, usable, lambda need, users: need(users, plan.length), MOST_USERS)
        if not users or fits(plan._replace(users=users), usable):
            return users
        return largest(lambda fewer: fits(plan._replace(users=fewer), usable), users)
    more = device(plan, memory_of(plan._replace(users=2 * plan.users)), usable).high
    near = _reached(plan.users, device(plan, found, usable).high, more, usable)
    return largest(lambda users: fits(plan._replace(users=users), usable), MOST_USERS, near)


def layers_possible(plan: Plan, usable: int) -> int | None:
    """The largest ``-ngl`` that fits."""
    if plan.engine not in FILES:
        return None
    layers = len(plan.arch.layer_types) + 1

    def holds(count: int) -> bool:
        return fits(plan._replace(serving=plan.serving.model_copy(update={"n_gpu_layers": count})), usable)

    return layers if holds(layers) else largest(holds, layers)


def experts_kept(plan: Plan, usable: int) -> int | None:
    """The fewest layers whose experts must stay in host memory so that all else fits (``--n-cpu-moe``).

    None where that is not asked: other engines, no experts, told already; where not even all of them are enough, and
    where the host cannot hold them.
    """
    told = plan.serving.moe_on_cpu or plan.serving.n_gpu_layers is not None
    if plan.engine != "llama.cpp" or plan.arch.experts is None or told:
        return None
    layers, room = len(plan.arch.layer_types), plan.run.host_ram_gib

    def kept(count: int) -> Plan:
        return plan._replace(serving=plan.serving.model_copy(update={"moe_on_cpu": count}))

    on_card = largest(lambda count: fits(kept(layers - count + 1), usable), layers)
    if not on_card or (room is not None and memory_of(kept(layers - on_card + 1)).host > gib(room)):
        return None
    return layers - on_card + 1


def utilization_needed(plan: Plan, usable: int) -> float | None:
    """The smallest share of the card, in hundredths, with which the run surely fits; None where no share does.

    What is surely left for the cache grows in proportion to the share.
    """
    if plan.total is None:
        return None
    most = memory_of(_with_share(plan, MOST_SHARE))
    if not most.surely_holds or not most.left:
        return None
    sure = 1 - most.uncertain[0] / most.left
    spare = (most.room - most.uncertain[0]) / (plan.total * sure)
    first = ceil(100 * max(MOST_SHARE - spare, LEAST_SHARE) - 0.01)
    for share in (first / 100, (first + 1) / 100):
        found = memory_of(_with_share(plan, share))
        if found.surely_holds:
            return share if device(plan, found, usable).high <= usable else None
    return None


def _with_share(plan: Plan, share: float) -> Plan:
    return plan._replace(serving=plan.serving.model_copy(update={"gpu_memory_utilization": share}))


def best_format(plan: Plan, usable: int, fits_now: bool) -> str | None:
    """The weights with the most bits with which the run fits; None where none does."""
    ladder = GGUF_LADDER if plan.engine in FILES else EXLLAMA_LADDER if plan.engine == "exllama" else SERVER_LADDER
    for name in ladder:
        fmt = weight_format(name).name if name else None
        if (fits_now and fmt == plan.fmt) or _tried(plan._replace(fmt=fmt), usable):
            return name or "bf16"
    return None


def _tried(plan: Plan, usable: int) -> bool:
    """Whether it fits, or would but for a share that is too large for the card whatever the weights are."""
    try:
        found = memory_of(plan)
    except EstimatorError:
        return False
    shared = found.filled is not None and beyond_the_pool(plan, found).high > usable
    return found.surely_holds if shared else device(plan, found, usable).high <= usable
