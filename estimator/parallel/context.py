"""Context parallel: every rank holds a part of each sequence; keys and values of the others are gathered.

torch 2.13, torch/distributed/tensor/experimental/_context_parallel/_attention.py: the rank's own part first, then one
block per other rank; the first rank works on the second half of its queries there (head-tail load balance). Partial
results are merged in fp32, and the merged one is kept beside the copy in token order.
"""

from collections.abc import Sequence

from estimator.step.tape import FULL, HALF, LONG, Rows, Tensor

HALF_ROWS: Rows = ("half", "T")


def ring_attention(q: Tensor, k: Tensor, v: Tensor, heads: int, kv_heads: int, size: int, cards: int) -> Tensor:
    """Flash attention over the parts of ``cards`` ranks; the result lies head after head."""
    tape = q.tape
    kept = [tape.save(t) for t in (q, k, v)] if q.needs else []
    out, sums = _forward(q, k, heads, cards)
    if not q.needs:
        return out
    kept += [tape.save(out), tape.save(sums), *(tape.save(tape.new("1", count, LONG)) for count in (2, 1))]
    padded = -(-size // (32 if size <= 128 else 64)) * (32 if size <= 128 else 64)

    width, kv_width, itemsize = q.width, k.width, q.itemsize

    def kernel(rows: Rows, sums_rows: Rows) -> list[Tensor]:
        grads = [tape.new(rows, width, itemsize), *(tape.new("T", kv_width, itemsize) for _ in range(2))]
        inside = [tape.new(sums_rows, heads, FULL), tape.new(sums_rows, heads * padded, FULL)]
        if kv_heads != heads:
            inside += [tape.new("T", heads * size, HALF) for _ in range(2)]
        del inside
        return grads

    def backward(_: Tensor) -> Sequence[Tensor | None]:
        queries: Tensor = tape.new("T", width, FULL)
        zeros: list[Tensor] = [tape.new("T", kv_width, FULL) for _ in range(2)]
        copies: list[Tensor] = [tape.new("T", kv_width, itemsize) for _ in range(2)]
        joined = tape.new("T", 2 * kv_width, itemsize)
        gathered = tape.new("T", 2 * kv_width * cards, itemsize, "communication")
        grads = kernel("T", "s128")
        flat = [tape.new("T", kv_width, FULL) for _ in range(2)]
        both: Tensor | None = tape.new("T", 2 * kv_width, FULL)
        del flat
        received: Tensor | None = None
        sent = tape.new("T", 2 * kv_width, FULL, "communication")
        for turn in range(1, cards):
            if turn < cards - 1:
                joined = tape.new("T", 2 * kv_width, itemsize)
            copies.clear()
            grads = kernel(HALF_ROWS, ("half128",))
            both = received = None
            zeros.clear()
            both = tape.new("T", 2 * kv_width, FULL)
            received, sent = sent, tape.new("T", 2 * kv_width, FULL, "communication")
            queries = tape.new("T", width, FULL)
        result = tape.new("T", width, itemsize)
        del queries
        keys = tape.new("T", 2 * kv_width, itemsize)
        del both, received, joined, grads, sent, gathered
        views = [Tensor(tape, keys.storage, "T", kv_width, itemsize) for _ in range(2)]
        return [result, *views]

    return tape.attach(out, (q, k, v), kept, backward)


def _forward(q: Tensor, k: Tensor, heads: int, cards: int) -> tuple[Tensor, Tensor]:
    """The merged result and its log-sum-exp."""
    tape, width, size = q.tape, q.width, q.itemsize
    copies = [tape.like(k) for _ in range(2)]
    joined = tape.new("T", 2 * k.width, size)
    gathered = tape.new("T", 2 * k.width * cards, size, "communication")
    del joined
    part = tape.new("T", width, size)
    sums = tape.new("T", heads, FULL)
    total = tape.new("T", width, FULL)
    for turn in range(1, cards):
        if turn < cards - 1:
            joined = tape.new("T", 2 * k.width, size)
            del joined
        copies.clear()
        part, total, sums = _merged(part, total, heads)
    out = tape.new("T", width, size)
    del total, gathered, part
    return out, sums


def _merged(before: Tensor, total: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """A block's result for half of the queries, merged into the total in fp32."""
    tape, width = before.tape, before.width
    part = tape.new(HALF_ROWS, width, before.itemsize)
    del before
    full = tape.new(HALF_ROWS, width, FULL)
    difference = tape.new(HALF_ROWS, width, FULL)
    scaled = tape.new(HALF_ROWS, width, FULL)
    del difference
    changed = tape.new(HALF_ROWS, width, FULL)
    del scaled
    sums = tape.new("T", heads, FULL)
    merged = tape.new("T", width, FULL)
    del total, changed, full
    return part, merged, sums
