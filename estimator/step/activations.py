"""Activation functions by their names in transformers 5.24 (activations.py): one kernel, or written out in Python."""

from collections.abc import Callable

from estimator.step import ops
from estimator.step.tape import Tensor


def gelu_tanh_written_out(x: Tensor) -> Tensor:
    """``0.5 * x * (1 + tanh(c * (x + d * x**3)))``: the power is fp32 under autocast, and all that follows from it."""
    half = ops.scale(x)
    inner = ops.scale(ops.power(x))
    inner = ops.add(x, inner)
    inner = ops.scale(inner)
    inner = ops.tanh(inner)
    inner = ops.shift(inner)
    return ops.mul(half, inner)


def gelu_fast(x: Tensor) -> Tensor:
    """``0.5 * x * (1 + tanh(x * c * (1 + d * x * x)))``, the products from left to right."""
    half = ops.scale(x)
    left = ops.scale(x)
    right = ops.shift(ops.mul(ops.scale(x), x))
    inner = ops.mul(left, right)
    del left, right
    inner = ops.tanh(inner)
    inner = ops.shift(inner)
    return ops.mul(half, inner)


def quick_gelu(x: Tensor) -> Tensor:
    """``x * sigmoid(1.702 * x)``."""
    return ops.mul(x, ops.sigmoid(ops.scale(x)))


def squared_relu(x: Tensor) -> Tensor:
    """``relu(x) ** 2``; the square of a tensor keeps it, fp32 under autocast."""
    positive = ops.relu(x)
    return ops.power(positive)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": ops.gelu,
    "gelu_pytorch_tanh": ops.gelu,
    "gelu_tanh": ops.gelu,
    "gelu_new": gelu_tanh_written_out,
    "gelu_fast": gelu_fast,
    "quick_gelu": quick_gelu,
    "relu": ops.relu,
    "relu2": squared_relu,
    "silu": ops.silu,
    "swish": ops.silu,
    "sigmoid": ops.sigmoid,
    "tanh": ops.tanh,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function that a config calls ``name``; an unknown name counts as one kernel that keeps its input."""
    return ACTIVATIONS.get(name, ops.keeps_input)
