"""The largest micro-batch and length that still fit, the rest as asked."""

from collections.abc import Callable

from estimator.schema import Largest
from estimator.setting import Setting, resized

Fits = Callable[[Setting], bool]
BATCH_LIMIT = 65536
LENGTH_LIMIT = 16_777_216


def largest_that_fit(setting: Setting, fits: Fits) -> Largest:
    """Both searched one at a time; 0 where not even the smallest fits."""
    at = setting.at
    batch = _largest(lambda size: fits(resized(setting, size, at.length)), at.batch, BATCH_LIMIT)
    length = _largest(lambda size: fits(resized(setting, at.batch, size)), at.length, LENGTH_LIMIT)
    return Largest.model_construct(micro_batch=batch, seq_len=length)


def _largest(fits: Callable[[int], bool], start: int, limit: int) -> int:
    """Largest size that fits, by doubling away from ``start`` and then halving the gap."""
    low, high = 0, start
    while high <= limit and fits(high):
        low, high = high, high * 2
    high = min(high, limit + 1)
    while high - low > max(1, low // 256):
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
