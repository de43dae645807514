"""Rotary positions and the attention kernels: flash, memory-efficient, and written out.

Kernel choice as PyTorch 2.13 makes it on sm80/86/89 (ATen sdp_utils.cpp) and transformers 5.24 hands it over;
temporaries inside the kernels from flash_api.cpp and attention_backward.cu (PyTorch 2.13).
"""

from collections.abc import Sequence

from estimator.step import fused, ops
from estimator.step.tape import BOOL, FULL, HALF, LONG, Rows, Tensor

ROUNDED = {"T": ("s128", "s32"), "b": ("s128", "s32"), "V": ("V128", "V32"), "S": ("S128", "S32")}
"""Rows of queries to those of the kernels' own tensors: every sequence in whole blocks of 128, of 32 tokens."""


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of queries or keys: ``x * cos + rotate_half(x) * sin``, or in place by a fused kernel."""
    if "rope" in x.tape.fused:
        return fused.rotate(x, cos, sin)
    return ops.add(ops.mul(x, cos), ops.mul(rotate_half(x), sin))


def rotate_half(x: Tensor) -> Tensor:
    """``cat(-x2, x1)``."""
    first = ops.part(x, x.width // 2)
    second = ops.part(x, x.width // 2)
    return ops.concat([ops.negate(second), first])


def sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    kv_heads: int,
    mask: Tensor | None,
    dropout: float = 0.0,
    *,
    by_head: bool = False,
) -> Tensor:
    """Scaled dot-product attention; rows are tokens, widths heads x head size. Returns tokens x heads x value size.

    The flash kernel's result lies as its queries do; ``by_head``: head after head, so that it is copied to token order.
    """
    if q.tape.core is not None:
        return q.tape.core(lambda q, k, v: sdpa(q, k, v, heads, kv_heads, mask, dropout, by_head=by_head), q, k, v)
    groups = heads // kv_heads
    size, value_size = q.width // heads, v.width // kv_heads
    if groups > 1 and (mask is not None or size != value_size or size > 256):
        if not q.tape.stage:  # of a single query, the heads that share keys become rows instead
            k, v = repeated(k, heads, kv_heads), repeated(v, heads, kv_heads)
        groups, kv_heads = 1, heads
    given = q, k, v
    q, k, v = (ops.autocast(x) for x in given)
    half = q.itemsize == HALF
    if half and mask is None and size == value_size <= 256:
        wide = -(-size // 8) * 8
        if wide != size:  # the kernel wants multiples of 8
            q, k, v = _padded(q, heads * wide), _padded(k, kv_heads * wide), _padded(v, kv_heads * wide)
        out = flash(q, k, v, heads, kv_heads, wide)
        del q, k, v
        if wide != size:
            return ops.copy(ops.part(out, heads * size))
        return ops.copy(out) if by_head else out
    mask = additive(mask, q.itemsize)
    if groups == 1:
        return efficient(q, k, v, heads, mask, value_size)
    return ops.copy(math_attention(q, k, v, heads, groups, mask, dropout, by_head=by_head))


def _padded(x: Tensor, width: int) -> Tensor:
    """``F.pad`` of the last dimension; its backward cuts the gradient into a new tensor."""
    tape = x.tape
    out = tape.new(x.rows, width, x.itemsize)
    if x.needs:
        rows, narrow, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, narrow, size),))
    return out


def repeated(x: Tensor, heads: int, kv_heads: int) -> Tensor:
    """Keys or values for every query head; a single head is expanded without a copy."""
    return ops.repeat(x, heads // kv_heads, copied=kv_heads > 1)


def flash(q: Tensor, k: Tensor, v: Tensor, heads: int, kv_heads: int, size: int) -> Tensor:
    """The flash kernel: keeps q, k, v, the result and a log-sum-exp per head and token."""
    tape = q.tape
    needed = q.needs or k.needs or v.needs
    kept = [tape.save(t) for t in (q, k, v)] if needed else []
    out = tape.result("attention", q.rows, q.width, q.itemsize)
    sums = tape.result("attention", q.rows, heads, FULL)
    state, unused = (tape.result("attention", "1", count, LONG) for count in (2, 1))
    if not needed:
        return out
    kept += [tape.save(t) for t in (out, sums, state, unused)]
    shapes = [ops.shape_of(t) for t in (q, k, v)]
    block = 32 if size <= 128 else 64
    padded = -(-size // block) * block
    filled = ROUNDED[str(q.rows)][0]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grads = [tape.new(*shape) for shape in shapes]
        inside = [tape.new(filled, heads, FULL), tape.new(filled, heads * padded, FULL)]
        if kv_heads != heads:
            inside += [tape.new(shapes[1][0], heads * size, HALF) for _ in range(2)]
        del inside
        return grads

    return tape.attach(out, (q, k, v), kept, backward)


def efficient(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    mask: Tensor | None,
    value_size: int,
    by_pair: Rows = "",
    padded: Tensor | None = None,
) -> Tensor:
    """The memory-efficient kernel: keeps q, k, v, the mask, the result and a padded log-sum-exp.

    ``by_pair``: rows of the gradient of a mask that wants one, for every sequence and head; ``padded``: a copy of the
    mask with longer rows, kept in its place where there is one.
    """
    tape = q.tape
    needed = q.needs or k.needs or v.needs
    kept = [tape.save(t) for t in (q, k, v, mask, padded) if t is not None] if needed else []
    out = tape.result("attention", q.rows, heads * value_size, q.itemsize)
    sums = tape.result("attention", ROUNDED[str(q.rows)][1], heads, FULL) if needed else None
    seed, offset = (tape.result("attention", "1", 1, LONG) for _ in range(2))
    if not needed:
        return out
    kept += [tape.save(t) for t in (out, sums, seed, offset)]
    shapes = [ops.shape_of(t) for t in (q, k, v)]
    half = q.itemsize == HALF
    rows, width = q.rows, q.width

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grads = [tape.new(*shape) for shape in shapes]
        if by_pair:
            grads.append(tape.new(by_pair, heads, shapes[0][2]))
        inside = [tape.new(rows, heads, FULL)]
        if half:
            inside.append(tape.new(rows, width, FULL))
        del inside
        return grads

    inputs = (q, k, v, mask) if by_pair and mask is not None else (q, k, v)
    return tape.attach(out, inputs, kept, backward)


def math_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    groups: int,
    mask: Tensor | None,
    dropout: float,
    *,
    by_head: bool = False,
) -> Tensor:
    """The written-out path of SDPA, in fp32; it makes the causal mask by itself. Its result lies head after head.

    Views by heads of several sequences are copied before the products, and the result's gradient before its.
    """
    itemsize = q.itemsize
    q, k, v = ops.cast(q, FULL), ops.cast(k, FULL), ops.cast(v, FULL)
    q = ops.scale(q)
    if mask is None and not q.tape.stage:
        mask = _causal_additive(q)
    k, v = ops.repeat(k, groups), ops.repeat(v, groups)
    scores = _math_scores(q, ops.scale(k), heads, groups, by_head)
    if mask is None:
        scores = ops.keeps_output(scores)
    else:
        wide = ops.cast(mask, scores.itemsize)
        del wide
        scores = safe_softmax(scores)
    scores = ops.dropout(scores, dropout)
    return ops.cast(_math_product(scores, v, q.rows, groups), itemsize)


def _math_scores(q: Tensor, k: Tensor, heads: int, groups: int, by_head: bool) -> Tensor:
    several = not q.tape.single and not by_head and not q.tape.stage
    half_k = ops.autocast(k)
    half_q = ops.autocast(q)
    left = ops.copy(half_q) if several else half_q
    right = ops.copy(half_k) if several and groups == 1 and not q.tape.caches else half_k
    return ops.matmul(left, right, scores_rows(q), heads)


def _math_product(weights: Tensor, v: Tensor, rows: Rows, groups: int) -> Tensor:
    tape = v.tape
    several = not tape.single
    half = ops.autocast(v)
    copied = several and groups == 1 and not tape.caches
    out = ops.matmul(weights, ops.copy(half) if copied else half, rows, v.width)
    folded = out.detach()
    if out.needs and several:
        shape = ops.shape_of(out)
        tape.attach(folded, (out,), (), lambda g: (tape.new(*shape),))
        return folded
    return out


def _causal_additive(q: Tensor) -> Tensor:
    """Ones, their lower triangle, its negation, and from that zeros and minus infinity."""
    tape = q.tape
    ones = tape.new("ss", 1, BOOL)
    lower = tape.like(ones)
    del ones
    inverted = tape.like(lower)
    out = tape.like(lower, q.itemsize)
    del inverted
    return out


def safe_softmax(scores: Tensor) -> Tensor:
    """``_safe_softmax``: a softmax that looks for rows without a finite score while both tensors are alive."""
    out = ops.keeps_output(scores)
    inside = [scores.tape.like(scores), scores.tape.like(scores, BOOL)]
    del inside
    return out


def additive(mask: Tensor | None, itemsize: int) -> Tensor | None:
    """A boolean mask as SDPA hands it to a kernel: a tensor of the queries' type, made for every layer.

    The memory-efficient kernel wants rows of a multiple of 8: other lengths are padded into one more copy.
    """
    if mask is None or mask.itemsize != BOOL:
        return mask
    tape = mask.tape
    dense: Rows = "bss" if mask.rows == "ss" else mask.rows
    if dense != "bss":
        inverted = tape.new(dense, 1, BOOL)
        return tape.new(dense, 1, itemsize)
    inverted = tape.new(("unaligned", dense), 1, BOOL)
    raw = tape.new(("unaligned", dense), 1, itemsize)
    inverted = tape.new(("aligned", dense), 1, BOOL)
    out = tape.new("bss8", 1, itemsize)
    del inverted, raw
    return out


def scores_rows(q: Tensor) -> str:
    """Rows of a score matrix whose queries have these rows."""
    return {"T": "bss", "b": "T", "V": "VV", "S": "SS"}[str(q.rows)]
