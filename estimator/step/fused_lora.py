"""unsloth's LoRA kernels: base and adapter in one autograd function that keeps its input and nothing else.

Read in unsloth/kernels/fast_lora.py and utils.py (``matmul_lora``, ``LoRA_W``, ``LoRA_MLP``): 4-bit weights are made
again in one buffer that all layers share, the first product of the adapter is not kept, the product of the gated
activation is made again in the backward.

IBM's acceleration plugin for trl took an earlier copy over (foundation-model-stack/fms-acceleration,
fused_ops/unsloth_lora): it has no such buffer but makes the weight anew for every use, and keeps the input as dropout
left it beside the input; queries, keys and values are one function there, so that the input is kept once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator.step import ops
from estimator.step.fused import Product
from estimator.step.tape import HALF, Leaf, Tape, Tensor

if TYPE_CHECKING:
    from estimator.step.model import Layer, Model

FUSED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Linears that both packages patch, by name; a model whose queries, keys and values are one linear stays as it is."""


def shared_buffer(model: "Model") -> Tensor | None:
    """The buffer for the largest 4-bit weight of the layers."""
    regime = model.regime
    if "lora" not in regime.fused or regime.quantised is None or "weights-remade" in regime.quirks:
        return None
    kinds = model.inventory.kinds
    largest = max((weight.numel for kind in kinds for weight in kind.weights if weight.role == "linear"), default=0)
    return model.tape.new("1", largest, HALF, "weight_casts") if largest else None


def fused_lora(layer: "Layer", x: Tensor, name: str, width: int, matrices: tuple[Leaf, Leaf]) -> Tensor:
    """``x W + x A B``."""
    x = ops.autocast(x)
    tape, size = x.tape, x.itemsize
    remade = isinstance(x, Product)
    kept = [] if remade else [tape.save(x)]
    weight = _weight(layer, name)
    out = tape.new(x.rows, width, size)
    del weight
    if f"{name}.bias" in layer.shapes:
        out = tape.new(x.rows, width, size)
    low = _low(tape, x, matrices, size)
    del low
    dropped = _dropped(layer, x)
    kept += [tape.save(t) for t in dropped]
    product = [tape.new(x.rows, width, size)] if dropped else []
    del dropped, product
    rows, inputs, _ = ops.shape_of(x)
    need = x.needs
    sizes = [leaf.width for leaf in matrices]
    rank = sizes[0] // inputs

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        again = tape.new(rows, inputs, size) if remade else None
        low = tape.new(rows, rank, size)
        grads = [tape.new("1", elements, size, "gradients") for elements in sizes]
        weight = _weight(layer, name)
        result = tape.new(rows, inputs, size) if need else None
        del again, low, weight
        return result, *grads

    return tape.attach(out, (x, *matrices), kept, backward)


def _weight(layer: "Layer", name: str) -> Tensor | None:
    """The weight made again for this use alone."""
    if "weights-remade" not in layer.regime.quirks or layer.regime.quantised is None:
        return None
    return layer.tape.new("1", layer.weight(f"{name}.weight").width, HALF, "weight_casts")


def _dropped(layer: "Layer", x: Tensor) -> list[Tensor]:
    """The input after dropout, kept instead of a mask."""
    adapter = layer.regime.adapter
    return [x.tape.like(x)] if adapter is not None and adapter.dropout > 0.0 else []


def _low(tape: Tape, x: Tensor, matrices: tuple[Leaf, Leaf], size: int) -> list[Tensor]:
    """The adapter's first product, and its matrices in the input's type."""
    casts = [tape.new("1", leaf.width, size, "weight_casts") for leaf in matrices if leaf.itemsize != size]
    return [*casts, tape.new(x.rows, matrices[0].width // x.width, size)]
