"""The largest micro-batch and length whose peak stays within a limit, the rest as asked."""

from collections.abc import Callable

from estimator.schema import Largest
from estimator.setting import Setting, live_bytes

Live = Callable[[int], int]
BATCH_LIMIT = 65_536
LENGTH_LIMIT = 16_777_216


def largest_that_fit(setting: Setting, limit_bytes: int) -> Largest:
    """Both searched one at a time, exactly; 0 where not even the smallest fits. ``limit_bytes`` bounds live tensors."""
    at = setting.at
    live = live_bytes(setting)
    batch = largest(lambda size: live(size, at.length), at.batch, limit_bytes, BATCH_LIMIT)
    length = largest(lambda size: live(at.batch, size), at.length, limit_bytes, LENGTH_LIMIT)
    return Largest(micro_batch=batch, seq_len=length)


def largest(live: Live, start: int, limit_bytes: int, most: int) -> int:
    """The largest size up to ``most`` with ``live(size) <= limit_bytes``; ``live`` does not fall as the size grows."""
    low, low_live = _known_to_fit(live, start, limit_bytes)
    if low == 0:
        return 0
    high, high_live = low, low_live
    while high_live <= limit_bytes:
        if high >= most:
            return most
        low, low_live = high, high_live
        high = min(most, max(2 * high, start))
        high_live = live(high)
    return _between(live, low, low_live, high, high_live, limit_bytes)


def _known_to_fit(live: Live, start: int, limit_bytes: int) -> tuple[int, int]:
    for size in (start, 1):
        needed = live(size)
        if needed <= limit_bytes:
            return size, needed
    return 0, 0


def _between(live: Live, low: int, low_live: int, high: int, high_live: int, limit_bytes: int) -> int:
    """Narrow [low fits, high does not] by interpolation, and by halving where that is slow."""
    halve = False
    while high - low > 1:
        share = (limit_bytes - low_live) / (high_live - low_live)
        middle = (low + high) // 2 if halve else low + int((high - low) * share)
        middle = min(max(middle, low + 1), high - 1)
        needed = live(middle)
        before = high - low
        if needed <= limit_bytes:
            low, low_live = middle, needed
        else:
            high, high_live = middle, needed
        halve = (high - low) * 2 > before
    return low
