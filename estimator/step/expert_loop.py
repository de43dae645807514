"""Experts one after the other, each a block of linear modules, as transformers 4 runs them (4.45 to 4.57).

Every expert takes its tokens out of the hidden states, runs, is weighted and added in place to the result; what it
keeps for the backward goes again before the next one's does. Tokens are taken as dealt out evenly. Of more than
``TURNS`` experts several share a turn, so that a trace stays short: their tokens run as one's, and the gradients of
the others' parameters are made with those of the one that is traced.
"""

from estimator.step import ops, routing
from estimator.step.activations import activation
from estimator.step.adapters import carries
from estimator.step.model import Layer, Model
from estimator.step.routers import mixture
from estimator.step.tape import LONG, Rows, Tensor

TURNS = 16
PARTS = ("experts.gate_up_proj", "experts.up_proj", "experts.down_proj")


def looped(model: Model, layer: Layer, x: Tensor, weights: Tensor, indices: Tensor) -> Tensor:
    """The chosen experts of every token, weighted and summed."""
    tape, count, total = x.tape, indices.width, mixture(model).experts
    turns = min(total, TURNS)
    weights = ops.cast(weights, x.itemsize)
    result = tape.like(x)
    chosen = tape.new(x.rows, count * total, LONG)  # one-hot, looked up expert by expert
    names, rows = _names(layer), ("dealt", x.rows, count, turns)
    for number in range(turns):
        own = [name for name in names if f".{number}." in name]
        result = _expert(model, layer, (x, weights, result), own, rows, (total - turns) / turns)
    del chosen
    return result


def _names(layer: Layer) -> list[str]:
    found = [name for name, weight in layer.shapes.items() if weight.part in PARTS and weight.role == "linear"]
    return [name.removesuffix(".weight") for name in found]


def _expert(
    model: Model, layer: Layer, tensors: tuple[Tensor, Tensor, Tensor], names: list[str], rows: Rows, others: float
) -> Tensor:
    x, weights, result = tensors
    act = activation(model.arch.activation)
    pairs = x.tape.new(rows, 2, LONG)  # its tokens, and which of their choices it is
    taken = _beside(layer, routing.take(x, pairs, x.width, in_place=True), names, others)
    hidden = act(layer.linear(taken, names[0]))
    if len(names) > 2:
        hidden = ops.mul(hidden, layer.linear(taken, names[1]))
    out = ops.mul(layer.linear(hidden, names[-1]), routing.take(weights, pairs, 1, in_place=True))
    return routing.add_in_place(result, ops.cast(out, x.itemsize))


def _beside(layer: Layer, x: Tensor, names: list[str], others: float) -> Tensor:
    """``x``; its backward makes the gradients of so many further experts' parameters."""
    adapter, regime = layer.regime.adapter, layer.regime
    elements, itemsize = 0, regime.itemsize
    for name in names:
        outputs, inputs = layer.shapes[f"{name}.weight"].shape
        if adapter is None:
            elements += outputs * inputs if layer.trains else 0
        elif carries(adapter, name):
            elements, itemsize = elements + adapter.rank * (outputs + inputs), adapter.itemsize
    elements = int(elements * others)
    if not elements:
        return x
    tape, leaf = x.tape, layer.extra(f"{names[0]}.others", elements, itemsize)
    out = Tensor(tape, x.storage, x.rows, x.width, x.itemsize)
    return tape.attach(out, (x, leaf), (), lambda g: (g, tape.new("1", elements, itemsize, "gradients")))
