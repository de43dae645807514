"""The largest micro-batch and length whose peak stays within a limit, the rest as asked."""

from collections.abc import Callable

from estimator.schema import Largest
from estimator.setting import Setting, live_bytes

Live = Callable[[int], int]
BATCH_LIMIT = 65_536
LENGTH_LIMIT = 16_777_216
FURTHEST = 64


def largest_that_fit(setting: Setting, limit_bytes: int, now: int) -> Largest:
    """Both searched one at a time, exactly; 0 where not even the smallest fits.

    ``limit_bytes`` bounds the live tensors, which are ``now`` bytes for the batch and length asked.
    """
    at = setting.at
    live = live_bytes(setting)
    items = at.batch // setting.rows
    batch = largest(lambda size: live(size, at.source or at.length), (items, now), limit_bytes, BATCH_LIMIT)
    length = largest(lambda size: live(items, size), (at.source or at.length, now), limit_bytes, LENGTH_LIMIT)
    return Largest(micro_batch=batch, seq_len=length * setting.layout.context)


def largest(live: Live, start: tuple[int, int], limit_bytes: int, most: int) -> int:
    """The largest size up to ``most`` with ``live(size) <= limit_bytes``; ``live`` does not fall as the size grows.

    ``start`` is a size and its live bytes.
    """
    high, high_live = start
    low, low_live = start if high_live <= limit_bytes else (1, live(1))
    if low_live > limit_bytes:
        return 0
    if high_live <= limit_bytes:
        high = min(2 * low, most)
        high_live = live(high)
    while high_live <= limit_bytes:
        if high >= most:
            return most
        beyond = _beyond(low, low_live, high, high_live, limit_bytes)
        low, low_live = high, high_live
        high = min(beyond, most)
        high_live = live(high)
    return _between(live, low, low_live, high, high_live, limit_bytes)


def _beyond(low: int, low_live: int, high: int, high_live: int, limit_bytes: int) -> int:
    """The first size that should not fit, on the line through two that do; at most ``FURTHEST`` times the larger."""
    left, slope = limit_bytes - high_live, (high_live - low_live) / (high - low)
    return high + 1 + (int(left / slope) if left < slope * (FURTHEST - 1) * high else (FURTHEST - 1) * high)


def _between(live: Live, low: int, low_live: int, high: int, high_live: int, limit_bytes: int) -> int:
    """Narrow [low fits, high does not] by false position; an end that stays twice counts half (Illinois)."""
    left, over, moved = float(limit_bytes - low_live), float(high_live - limit_bytes), 0
    while high - low > 1:
        middle = low + int((high - low) * left / (left + over))
        middle = min(max(middle, low + 1), high - 1)
        beyond = live(middle) - limit_bytes
        if beyond <= 0:
            over = over / 2 if moved < 0 else over
            low, left, moved = middle, -beyond, -1
        else:
            left = left / 2 if moved > 0 else left
            high, over, moved = middle, beyond, 1
    return low
