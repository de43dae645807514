"""Mixtures of experts: routers, the sorted and grouped expert computation, shared experts.

Experts run as transformers 5.24 runs them on CUDA (integrations/moe.py, "grouped_mm"): chosen pairs sorted by expert,
two grouped products around the gated activation, weighting, and the pairs of a token summed in their old order.
"""

from collections.abc import Callable

from estimator.step import ops, routing
from estimator.step.model import Layer, Model, linear
from estimator.step.tape import FULL, Leaf, Tensor

Routed = tuple[Tensor, Tensor, Tensor]
"""Router logits (alive as long as the block runs), weights of the chosen experts, their indices."""
Router = Callable[[Model, Tensor, Leaf], Routed]
Gate = Callable[[Tensor], Tensor]


def fact(model: Model, name: str, default: int | float | bool | str | None = None) -> int | float | bool | str | None:
    """A config value of the architecture that only its own family needs."""
    value = dict(model.arch.extra).get(name)
    return default if value is None else value


def softmax_router(model: Model, x: Tensor, weight: Leaf) -> Routed:
    """Softmax over all experts, the best ``k``, normalised where the config says so (Qwen, OLMoE)."""
    moe = model.arch.experts
    assert moe is not None
    logits = linear(x, weight, None, moe.experts)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, moe.per_token)
    if fact(model, "norm_topk_prob", False):
        values = routing.divide_in_place(values, routing.total(values))
    return logits, ops.cast(values, logits.itemsize), indices


def full_softmax_router(model: Model, x: Tensor, weight: Leaf) -> Routed:
    """As ``softmax_router``, always normalised, with weights in fp32 (Mixtral)."""
    moe = model.arch.experts
    assert moe is not None
    logits = linear(x, weight, None, moe.experts)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, moe.per_token)
    return logits, routing.divide_in_place(values, routing.total(values)), indices


def limited_softmax_router(model: Model, x: Tensor, weight: Leaf) -> Routed:
    """DeepSeek-V2: logits in fp32, softmax, optionally only the best groups of experts, scaled weights."""
    moe = model.arch.experts
    assert moe is not None
    logits = linear(ops.cast(x, FULL), ops.cast(weight, FULL), None, moe.experts)
    scores = ops.softmax(logits, FULL)
    if fact(model, "topk_method", "greedy") == "group_limited_greedy":
        groups = int(fact(model, "n_group", 1) or 1)
        scores = _only_best_groups(scores, routing.greatest(scores, groups), int(fact(model, "topk_group", 1) or 1))
    values, indices = routing.topk(scores, moe.per_token)
    values = ops.scale(values)
    return logits, values, indices


def sigmoid_router(model: Model, x: Tensor, weight: Leaf) -> Routed:
    """DeepSeek-V3: sigmoid scores, a bias only for the choice, groups by their two best experts, scaled weights."""
    moe = model.arch.experts
    assert moe is not None
    logits = linear(ops.cast(x, FULL), ops.cast(weight, FULL), None, moe.experts)
    scores = ops.sigmoid(logits)
    choice = ops.shift(scores)
    groups = int(fact(model, "n_group", 1) or 1)
    best, members = routing.topk(choice, 2 * groups)
    sums = routing.total(best, groups)
    del best
    choice = _only_best_groups(choice, sums, int(fact(model, "topk_group", 1) or 1))
    indices = routing.topk(choice, moe.per_token)[1]
    values = routing.gather(scores, indices)
    if fact(model, "norm_topk_prob", True):
        denominator = ops.shift(routing.total(values))
        values = routing.divide_in_place(values, denominator)
    values = ops.scale(values)
    del members
    return logits, values, indices


def _only_best_groups(scores: Tensor, sums: Tensor, count: int) -> Tensor:
    chosen = routing.topk(sums, count)[1]
    groups = sums.tape.like(sums)
    spread = sums.tape.like(scores)
    out = routing.masked_fill(scores, routing.complement(spread))
    del chosen, groups, spread
    return out


def silu_gate(x: Tensor) -> Tensor:
    """``silu(gate) * up`` of the two halves."""
    gate, up = ops.split(x, (x.width // 2, x.width // 2))
    return ops.mul(ops.silu(gate), up)


def experts(model: Model, layer: Layer, x: Tensor, weights: Tensor, indices: Tensor, gate: Gate = silu_gate) -> Tensor:
    """The chosen experts of every token, weighted and summed."""
    moe = model.arch.experts
    assert moe is not None
    count = indices.width
    ids, order = routing.order_by_expert(indices)
    chosen = routing.take(x, ops.integers(order, order.rows, order.width), x.width * count)
    weights = routing.take(weights, order, count)
    narrow, counts, offsets = routing.histogram(ids, moe.experts)
    part = "experts.gate_up_proj" if model.arch.gated_mlp else "experts.up_proj"
    first = layer.weight(layer.name_of(part))
    out = routing.grouped_mm(chosen, first, offsets, first.width // moe.experts // x.width * count)
    out = gate(out)
    second = layer.weight(layer.name_of("experts.down_proj"))
    out = routing.grouped_mm(out, second, offsets, x.width * count)
    weighted = ops.mul(out, weights)
    weighted = routing.take(weighted, routing.inverse(order), weighted.width)
    summed = routing.sum_chosen(weighted, count)
    del narrow, counts
    return ops.cast(summed, x.itemsize)


def mlp(layer: Layer, x: Tensor, prefix: str = "") -> Tensor:
    """A dense gated block (or, with ``prefix`` "shared.", the shared experts')."""
    gate, up, down = (layer.module_of(f"{prefix}{part}_proj") for part in ("gate", "up", "down"))
    return layer.linear(ops.mul(ops.silu(layer.linear(x, gate)), layer.linear(x, up)), down)


def block(model: Model, layer: Layer, x: Tensor, router: Router) -> Tensor:
    """Routed experts, plus the shared ones where the model has them (DeepSeek's order)."""
    logits, weights, indices = router(model, x, layer.weight(layer.name_of("router"), router_size(model)))
    out = experts(model, layer, x, weights, indices)
    if layer.module_of("shared.up_proj"):
        out = ops.add(out, mlp(layer, x, "shared."))
    del logits
    return out


def block_shared_first(model: Model, layer: Layer, x: Tensor, router: Router) -> Tensor:
    """Qwen2-MoE: the shared expert runs first, its result is scaled by a sigmoid gate and added."""
    shared = mlp(layer, x, "shared.")
    logits, weights, indices = router(model, x, layer.weight(layer.name_of("router")))
    out = experts(model, layer, x, weights, indices)
    shared = scaled_rows(ops.sigmoid(layer.linear(x, layer.module_of("shared_gate"))), shared)
    out = ops.add(out, shared)
    del logits
    return out


def scaled_rows(gate: Tensor, x: Tensor) -> Tensor:
    """``gate * x`` with one gate a token."""
    return ops.mul(x, gate)


def router_size(model: Model) -> int:
    """Bytes an element of a router that its class keeps in fp32; 0 where it has the model's type."""
    return FULL if model.arch.model_type in FULL_ROUTERS else 0


FULL_ROUTERS = frozenset({"deepseek_v2", "deepseek_v3"})
"""Types whose router is created in fp32 whatever the model's type (transformers 5.24)."""
