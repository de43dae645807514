"""Mixtures of experts: the sorted and grouped expert computation, and shared experts around it.

Experts run as transformers 5.24 runs them on CUDA (integrations/moe.py, "grouped_mm"): chosen pairs sorted by expert,
two grouped products around the gated activation, weighting, and the pairs of a token summed in their old order.
Router logits live as long as the block; no auxiliary loss is asked for (``output_router_logits`` is off by default).
"""

from collections.abc import Callable

from estimator.step import ops, routing
from estimator.step.activations import activation
from estimator.step.expert_adapters import Stacks
from estimator.step.expert_loop import looped
from estimator.step.model import Layer, Model
from estimator.step.routers import Router, mixture
from estimator.step.tape import Tensor

Gate = Callable[[Model, Tensor], Tensor]


def gated(model: Model, x: Tensor) -> Tensor:
    """``act(gate) * up`` of the two halves; for experts without a gate the activation alone."""
    act = activation(model.arch.activation)
    if not model.arch.gated_mlp:
        return act(x)
    gate, up = ops.split(x, (x.width // 2, x.width // 2))
    return ops.mul(act(gate), up)


def experts(model: Model, layer: Layer, x: Tensor, weights: Tensor, indices: Tensor, gate: Gate = gated) -> Tensor:
    """The chosen experts of every token, weighted and summed."""
    if model.regime.linear_experts:
        return looped(model, layer, x, weights, indices)
    count, total = indices.width, mixture(model).experts
    stacks = Stacks(layer)
    ids, order = routing.order_by_expert(indices)
    chosen = exchanged(layer, routing.take(x, ops.integers(order, order.rows, order.width), x.width * count))
    weights = routing.take(weights, order, count)
    narrow, counts, offsets = routing.histogram(ids, total)
    name = layer.name_of("experts.gate_up_proj") or layer.name_of("experts.up_proj")
    width = layer.weight(name).width // layer.shapes[name].shape[0] // x.width * count
    out = _product(stacks, chosen, name, offsets, ids, width)
    out = gate(model, out)
    out = exchanged(layer, _product(stacks, out, layer.name_of("experts.down_proj"), offsets, ids, x.width * count))
    weighted = ops.mul(out, weights)
    weighted = routing.take(weighted, routing.inverse(order), weighted.width)
    summed = routing.sum_chosen(weighted, count)
    del narrow, counts, stacks
    return ops.cast(summed, x.itemsize)


def exchanged(layer: Layer, x: Tensor) -> Tensor:
    """Pairs sent to the ranks that have their experts, or back: an all-to-all and a copy in the experts' order.

    As torchtitan and Megatron-core dispatch tokens (torchtitan/distributed/expert_parallel.py, megatron/core/
    transformer/moe/token_dispatcher.py), with as many pairs received as sent; both ways make new gradients too.
    """
    if layer.runtime is None or layer.runtime.expert == 1:
        return x
    for _ in range(2):
        x = ops.fresh_gradient(ops.copy(x))
    return x


def _product(stacks: Stacks, x: Tensor, name: str, offsets: Tensor, ids: Tensor, width: int) -> Tensor:
    """A grouped product, plus each pair's bias, which waits for the next ones, where the experts have biases."""
    layer, bias = stacks.layer, f"{name}_bias"
    if not layer.has(bias):
        return routing.grouped_mm(x, stacks.weight(name), offsets, width)
    stacks.biases = routing.take(layer.weight(bias), ids, width)
    out = routing.grouped_mm(x, stacks.weight(name), offsets, width)
    return routing.add_in_place(out, stacks.biases)


def mlp(model: Model, layer: Layer, x: Tensor, prefix: str = "") -> Tensor:
    """A dense block (or, with ``prefix`` "shared.", the shared experts'), gated or plain."""
    act = activation(model.arch.activation)
    gate, up, down = (layer.module_of(f"{prefix}{part}_proj") for part in ("gate", "up", "down"))
    if not gate:
        return layer.linear(act(layer.linear(x, up)), down)
    return layer.linear(ops.mul(act(layer.linear(x, gate)), layer.linear(x, up)), down)


def block(model: Model, layer: Layer, x: Tensor, router: Router, gate: Gate = gated) -> Tensor:
    """Routed experts, then the shared ones where the model has them (DeepSeek's order)."""
    logits, weights, indices = router(model, layer, x)
    out = experts(model, layer, x, weights, indices, gate)
    if layer.module_of("shared.up_proj"):
        out = ops.add(out, mlp(model, layer, x, "shared."))
    del logits
    return out


def block_shared_first(model: Model, layer: Layer, x: Tensor, router: Router) -> Tensor:
    """The shared experts run first (Hunyuan, ERNIE); where they have a gate (Qwen) its sigmoid scales them."""
    shared = mlp(model, layer, x, "shared.") if layer.module_of("shared.up_proj") else None
    logits, weights, indices = router(model, layer, x)
    out = experts(model, layer, x, weights, indices)
    if shared is not None and layer.module_of("shared_gate"):
        shared = ops.mul(shared, ops.sigmoid(layer.linear(x, layer.module_of("shared_gate"))))
    if shared is not None:
        out = ops.add(out, shared)
    del logits
    return out
