"""Variants of the rotary embedding: on a part of each head, on interleaved pairs, in fp32."""

from estimator.step import ops
from estimator.step.attention import rotate, rotate_half
from estimator.step.tape import FULL, Tensor


def partial(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, heads: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Queries and keys of ``heads`` heads: both are cut, the rotary parts turned, then both are joined again."""
    q_turned, q_rest = cut(q, cos.width * heads[0])
    k_turned, k_rest = cut(k, cos.width * heads[1])
    q_turned, k_turned = rotate(q_turned, cos, sin), rotate(k_turned, cos, sin)
    return ops.concat([q_turned, q_rest]), ops.concat([k_turned, k_rest])


def cut(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The rotary part and the rest, which may be empty; a slice of everything is the tensor itself."""
    turned = x if width == x.width else ops.part(x, width)
    return turned, ops.part(x, x.width - width)


def interleaved(table: Tensor) -> Tensor:
    """The first half of a table with every entry twice, as pairs of neighbours need it; made in every layer."""
    return table.tape.like(table)


def widened(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Tables in fp32 make the products fp32; both results are cast back at the end (OLMo)."""
    q_turned, k_turned = rotate(q, cos, sin), rotate(k, cos, sin)
    return ops.cast(q_turned, q.itemsize), ops.cast(k_turned, k.itemsize)


def in_full(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys are cast to fp32 first, the results back (Cohere)."""
    itemsize = q.itemsize
    q, k = ops.cast(q, FULL), ops.cast(k, FULL)
    q_turned, k_turned = rotate(q, cos, sin), rotate(k, cos, sin)
    return ops.cast(q_turned, itemsize), ops.cast(k_turned, itemsize)


def half_in_full(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x.float() * cos + rotate_half(x).float() * sin`` (ERNIE 4.5)."""
    return ops.add(ops.mul(ops.cast(x, FULL), cos), ops.mul(ops.cast(rotate_half(x), FULL), sin))
