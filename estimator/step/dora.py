"""DoRA as peft 0.21 runs it: the adapter's product and its norm are made again in every forward.

Read in peft/tuners/lora/dora.py (``DoraLinearLayer.forward``): the product of the adapter's matrices goes through an
identity matrix of the input's width, the base weight is dequantised and cast to the input's type, the norm is detached.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from estimator.step import ops
from estimator.step.quantised import dequantised
from estimator.step.tape import FULL, Leaf, Tensor

if TYPE_CHECKING:
    from estimator.step.model import Layer


class Product(NamedTuple):
    """The adapter's product, and what its unused graph holds while it lives."""

    weight: Tensor
    graph: Sequence[object]


def dora(layer: "Layer", x: Tensor, result: Tensor, name: str, matrices: tuple[Leaf, Leaf], dropped: bool) -> Tensor:
    """What is added to ``result``; ``dropped``: the input went through dropout, so the base runs again on it."""
    from estimator.step.model import linear

    adapter = layer.regime.adapter
    assert adapter is not None
    down, up = matrices
    inputs, outputs = x.width, result.width
    product = _product(down, up, inputs, outputs)
    product = Product(ops.cast(product.weight, x.itemsize), product.graph)
    magnitude = layer.extra(f"{name}.lora_magnitude_vector", outputs, adapter.itemsize)
    weight = _base(layer, name, x.itemsize)
    norm = _norm(weight, product.weight, outputs)
    scale = _over(magnitude, norm)
    low = linear(linear(x, down, None, adapter.rank), up, None, outputs)
    if dropped:
        base = linear(x, weight, None, outputs)
    elif f"{name}.bias" in layer.shapes:
        base = ops.subtract(result, tape_bias(layer, name))
    else:
        base = result
    shifted = ops.shift(scale)
    left = _times(shifted, base)
    del shifted
    right = _times(scale, low)
    right = ops.scale(right)
    update = ops.add(left, right) if left.itemsize >= right.itemsize else ops.add(right, left)
    del left, right, product, weight, norm
    return update


def tape_bias(layer: "Layer", name: str) -> Tensor:
    """The base linear's frozen bias."""
    return layer.weight(f"{name}.bias")


def _product(down: Leaf, up: Leaf, inputs: int, outputs: int) -> Product:
    """``B(A(identity))``: nothing flows back through it, but its graph keeps the identity and the first product."""
    tape = down.tape
    eye = tape.new("1", inputs * inputs, down.itemsize, "weight_casts")
    first = ops.autocast(down)
    half = ops.autocast(eye)
    kept = [tape.save(half)]
    low = tape.new("1", inputs * (down.width // inputs), half.itemsize, "weight_casts")
    second = ops.autocast(up)
    kept += [tape.save(low), tape.save(second)]
    weight = tape.new("1", inputs * outputs, half.itemsize, "weight_casts")
    del first, eye
    return Product(weight, kept)


def _base(layer: "Layer", name: str, itemsize: int) -> Tensor:
    """The frozen base weight in the input's type."""
    weight = layer.weight(f"{name}.weight")
    quantised = layer.regime.quantised
    if quantised is None:
        return ops.cast(weight, itemsize)
    return ops.cast(dequantised(layer.tape, weight.width, layer.out_features(name, weight.shape), quantised), itemsize)


def _norm(weight: Tensor, product: Tensor, outputs: int) -> Tensor:
    """The norm of every row of base plus scaled product; fp32 under autocast, then in the weight's type."""
    tape = weight.tape
    scaled = tape.like(product, item="weight_casts")
    total = tape.new("1", weight.width, weight.itemsize, "weight_casts")
    del scaled
    norm = tape.new("1", outputs, FULL if tape.autocast else weight.itemsize)
    return ops.cast(norm, total.itemsize)


def _times(scale: Tensor, x: Tensor) -> Tensor:
    """``scale * x`` with the broadcast factor first: its gradient is summed before the other's is cast."""
    tape, need = x.tape, x.needs
    kept = ([tape.save(scale)] if need else []) + [tape.save(x)]
    out = tape.like(x, max(x.itemsize, scale.itemsize))
    rows, width, size = ops.shape_of(out)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        factor = tape.new(rows, width, size)
        return factor, tape.new(rows, width, size) if need else None

    return tape.attach(out, (scale, x), kept, backward)


def _over(magnitude: Leaf, norm: Tensor) -> Tensor:
    """``magnitude / norm``; the norm is kept for the magnitude's gradient."""
    tape = magnitude.tape
    kept = [tape.save(norm)]
    out = tape.like(magnitude, max(magnitude.itemsize, norm.itemsize))
    rows, width, size = ops.shape_of(out)
    return tape.attach(out, (magnitude,), kept, lambda g: (tape.new(rows, width, size, "gradients"),))
