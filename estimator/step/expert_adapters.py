"""LoRA on the experts' stacked tensors and on a router's matrix, as peft 0.21 runs it (``lora.ParamWrapper``).

The update is folded into a whole new tensor for each use, ``W + scaling * B A``: once to try it when the wrapper sets
itself up, and once when the experts first read it; that one lives as long as their code and is kept for the backward.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.model import Layer
from estimator.step.tape import Leaf, Tensor

GATE_UP = ("gate_proj", "up_proj", "w1", "w3")
DOWN = ("down_proj", "w2")


def rank_of(layer_part: str, moved: Sequence[str], rank: int) -> int:
    """The rank of the adapter on a stacked tensor: a fused one gets that of both its halves; 0 where it has none."""
    if layer_part == "experts.gate_up_proj":
        return rank * sum(name in GATE_UP for name in moved)
    if layer_part == "experts.down_proj":
        return rank if any(name in DOWN for name in moved) else 0
    return rank if layer_part == "router" and "gate" in moved else 0


class Stacks:
    """The experts' two tensors with their adapters; what is folded lives as long as this object."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.factors: dict[str, tuple[Tensor, Tensor]] = {}
        self.folded: list[Tensor] = []
        self.biases: Tensor | None = None
        adapter = layer.regime.adapter
        if adapter is None or not adapter.moved:
            return
        for part in ("experts.down_proj", "experts.gate_up_proj"):
            rank, name = rank_of(part, adapter.moved, adapter.rank), layer.name_of(part)
            if rank and name:
                self.factors[name] = _factors(layer, layer.weight(name), rank * layer.weight(name).shape[0])
                _folded(layer.weight(name), *self.factors[name])

    def weight(self, name: str) -> Tensor:
        """The tensor ``name`` as the experts use it."""
        plain = self.layer.weight(name)
        if name not in self.factors:
            return plain
        self.folded.append(_folded(plain, *self.factors[name]))
        return self.folded[-1]


def _factors(layer: Layer, weight: Leaf, rank: int) -> tuple[Tensor, Tensor]:
    """The two matrices by expert, in the tensor's own type; the second one's gradient is copied to its layout."""
    adapter = layer.regime.adapter
    assert adapter is not None
    _, outputs, inputs = weight.shape
    down = layer.extra(f"{weight.name}.lora_A", inputs * rank, adapter.itemsize)
    up = layer.extra(f"{weight.name}.lora_B", outputs * rank, adapter.itemsize)
    flat = _viewed(down, copied=False)
    left = ops.cast(_viewed(up, copied=True), weight.itemsize)
    return left, ops.cast(flat, weight.itemsize)


def _viewed(x: Leaf, *, copied: bool) -> Tensor:
    tape, out = x.tape, x.detach()
    if x.needs:
        shape = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(*shape, "gradients") if copied else g,))
    return out


def _folded(weight: Leaf, left: Tensor, right: Tensor) -> Tensor:
    """``baddbmm``: the scaling makes each gradient twice."""
    tape = weight.tape
    needed = left.needs or right.needs
    kept = [tape.save(right), tape.save(left)] if needed else []
    out = tape.new("1", weight.width, weight.itemsize, "weight_casts")
    if not needed:
        return out
    shapes = [ops.shape_of(factor) for factor in (left, right)]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grads = []
        for shape in shapes:
            product = tape.new(*shape)
            grads.append(tape.new(*shape))
            del product
        return grads

    return tape.attach(out, (left, right), kept, backward)


def with_update(layer: Layer, weight: Leaf) -> Tensor:
    """A router's matrix plus its update, made twice as the stacked tensors are; as it is without an adapter."""
    adapter = layer.regime.adapter
    rank = rank_of("router", adapter.moved, adapter.rank) if adapter and weight.name.endswith("gate.weight") else 0
    if adapter is None or not rank:
        return weight
    outputs, inputs = weight.shape
    down = layer.extra(f"{weight.name}.lora_A", inputs * rank, adapter.itemsize)
    up = layer.extra(f"{weight.name}.lora_B", outputs * rank, adapter.itemsize)
    update = ops.cast(ops.scale(ops.matmul(up, down, "1", weight.width)), weight.itemsize)
    ops.add(weight, update)
    return ops.add(weight, update)
