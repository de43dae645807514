"""Rotary positions on a part of each head: the rest of it is cut off and put back behind."""

from estimator.step import ops
from estimator.step.attention import rotate
from estimator.step.tape import Tensor


def rotate_both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, heads: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Queries and keys of ``heads`` heads; each is cut, the rotary parts are turned, then both are joined again."""
    q_turned, q_rest = cut(q, cos.width * heads[0])
    k_turned, k_rest = cut(k, cos.width * heads[1])
    q_turned, k_turned = rotate(q_turned, cos, sin), rotate(k_turned, cos, sin)
    return ops.concat([q_turned, q_rest]), ops.concat([k_turned, k_rest])


def cut(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The rotary part and the rest, which may be empty; a slice of everything is the tensor itself."""
    turned = x if width == x.width else ops.part(x, width)
    return turned, ops.part(x, x.width - width)
