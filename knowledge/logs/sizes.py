"""Sizes as programs print them, in bytes."""

UNITS = {
    "b": 1, "byte": 1, "bytes": 1,
    "k": 2**10, "kb": 2**10, "kib": 2**10,
    "m": 2**20, "mb": 2**20, "mib": 2**20,
    "g": 2**30, "gb": 2**30, "gib": 2**30,
    "t": 2**40, "tb": 2**40, "tib": 2**40,
}  # fmt: skip
"""What the libraries mean: PyTorch's MPS backend, vLLM, DeepSpeed and XLA print "GB" or "G" and divide by 2^30."""

MOST_DIGITS = 40


def bytes_of(number: str, unit: str) -> int | None:
    """Bytes of a printed size, exactly; None when it is no number."""
    digits = number.replace(",", "").rstrip(".")
    if len(digits) > MOST_DIGITS:
        return None
    whole, _, part = digits.partition(".")
    scale: int = 10 ** len(part)
    try:
        size, rest = divmod(int(whole + part) * UNITS[unit.lower()], scale)
    except (KeyError, ValueError):
        return None
    return size + (2 * rest + size % 2 > scale)  # halves to even ones
