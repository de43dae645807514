"""Norms that model families write out in Python, each with the casts and temporaries of its own code."""

from collections.abc import Callable

from estimator.step import ops
from estimator.step.model import Layer
from estimator.step.tape import FULL, Tensor

Norm = Callable[..., Tensor]
"""``norm(layer, x, name, groups=1)``: the norm called ``name``, over the whole width or each of ``groups`` heads."""


def rms(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Llama's: normalised in fp32, cast back, then scaled."""
    return layer.rms_norm(x, name, groups)


def layer_norm(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """``nn.LayerNorm``."""
    del groups
    return layer.layer_norm(x, name)


def rms_plus_one(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Gemma's: scaled by one plus the weight in fp32, then cast back."""
    itemsize = x.itemsize
    h = _normalised(ops.cast(x, FULL), groups)
    h = ops.mul(h, ops.shift(ops.cast(layer.weight(f"{name}.weight"), FULL)))
    return ops.cast(h, itemsize)


def _normalised(x: Tensor, groups: int) -> Tensor:
    return ops.mul(x, ops.rsqrt(ops.shift(ops.mean(ops.power(x), groups))))


def unscaled(x: Tensor, groups: int = 1) -> Tensor:
    """Normalised in fp32 and cast back, without a weight."""
    return ops.cast(_normalised(ops.cast(x, FULL), groups), x.itemsize)


def rms_scaled_first(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """OLMo-2's: scaled by the weight before the cast back."""
    (h, _variance), itemsize = _root_mean_square(x, groups), x.itemsize
    return ops.cast(ops.mul(h, layer.weight(f"{name}.weight")), itemsize)


def rms_scaled_in_full(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Helium's: as OLMo-2's, with the weight in fp32."""
    (h, _variance), itemsize = _root_mean_square(x, groups), x.itemsize
    return ops.cast(ops.mul(h, ops.cast(layer.weight(f"{name}.weight"), FULL)), itemsize)


def _root_mean_square(x: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """``x`` over its root mean square in fp32, and the mean square, which lives as long as the norm's own code."""
    h = ops.cast(x, FULL)
    variance = ops.mean(ops.power(h), groups)
    return ops.mul(h, ops.rsqrt(ops.shift(variance))), variance


def centred(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Cohere's layer norm without a bias, written out in fp32."""
    itemsize = x.itemsize
    h = ops.cast(x, FULL)
    average = ops.mean(h, groups)
    variance = ops.mean(ops.power(ops.subtract(h, average)), groups)
    h = ops.mul(ops.subtract(h, average), ops.rsqrt(ops.shift(variance)))
    h = ops.mul(h, ops.cast(layer.weight(f"{name}.weight"), FULL))
    return ops.cast(h, itemsize)


def without_weight(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """OLMo's layer norm: in fp32, with neither weight nor bias."""
    del layer, name, groups
    return ops.cast(ops.plain_layer_norm(ops.cast(x, FULL)), x.itemsize)


def layer_norm_plus_one(layer: Layer, x: Tensor, name: str, groups: int = 1) -> Tensor:
    """Nemotron's layer norm: scaled by one plus the weight; under autocast all of it is in 16 bit."""
    del groups
    tape = x.tape
    weight: Tensor = ops.shift(layer.weight(f"{name}.weight"))
    bias: Tensor = layer.weight(f"{name}.bias")
    if tape.autocast:
        x, weight, bias = ops.to_half(x), ops.to_half(weight), ops.to_half(bias)
    outer, tape.autocast = tape.autocast, False
    out = ops.layer_norm(x, weight, bias)
    tape.autocast = outer
    return out
