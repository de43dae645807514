"""Routers: how a token's experts are chosen and weighted, class by class (transformers 5.24).

A router returns its logits (alive as long as the block runs), the weights of the chosen experts and their indices.
"""

from collections.abc import Callable

from estimator.architecture import Experts
from estimator.step import ops, routing
from estimator.step.expert_adapters import with_update
from estimator.step.model import Layer, Model, linear
from estimator.step.tape import BOOL, FULL, Tensor

Routed = tuple[Tensor, Tensor, Tensor]
Router = Callable[[Model, Layer, Tensor], Routed]


def fact(model: Model, name: str, default: int | float | bool | str) -> int | float | bool | str:
    """A config value that only its own family needs; ``default`` is the class's."""
    value = dict(model.arch.extra).get(name)
    return default if value is None else value


def mixture(model: Model) -> Experts:
    """The numbers of the mixture."""
    assert model.arch.experts is not None
    return model.arch.experts


def matrix(layer: Layer, itemsize: int = 0) -> Tensor:
    """The router's matrix; ``itemsize`` where its class creates it in fp32 whatever the model's type."""
    name = layer.name_of("router") or layer.name_of(AS_LINEAR)
    return with_update(layer, layer.weight(name, itemsize))


AS_LINEAR = "experts.router"
"""A router that is a linear module (transformers 4): packed and adapted like any other."""


def _logits(model: Model, layer: Layer, x: Tensor) -> Tensor:
    module = layer.module_of(AS_LINEAR)
    if module:
        return layer.linear(x, module)
    return linear(x, matrix(layer), None, mixture(model).experts)


def _logits_in_full(model: Model, layer: Layer, x: Tensor) -> Tensor:
    wide, weight = ops.cast(x, FULL), ops.cast(matrix(layer, FULL), FULL)
    return linear(wide, weight, None, mixture(model).experts)


def softmax(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Softmax over all experts, the best ``k``, normalised where the config says so (Qwen, OLMoE)."""
    logits = _logits(model, layer, x)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, mixture(model).per_token)
    if fact(model, "norm_topk_prob", model.arch.model_type in NORMALISED):
        values = routing.divide_in_place(values, routing.total(values))
    return logits, ops.cast(values, logits.itemsize), indices


NORMALISED = frozenset({"qwen3_next", "mellum"})
"""Types whose class default normalises the chosen weights."""


def softmax_normalised(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Always normalised, weights in the type of the logits (Qwen-VL, Qwen 3.5)."""
    logits = _logits(model, layer, x)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, mixture(model).per_token)
    values = routing.divide_in_place(values, routing.total(values))
    return logits, ops.cast(values, logits.itemsize), indices


def softmax_in_full(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Always normalised, with weights in fp32 (Mixtral)."""
    logits = _logits(model, layer, x)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, mixture(model).per_token)
    return logits, routing.divide_in_place(values, routing.total(values)), indices


def softmax_plain(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Never normalised, weights in the type of the hidden states (Jamba)."""
    logits = _logits(model, layer, x)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, mixture(model).per_token)
    return logits, ops.cast(values, x.itemsize), indices


def softmax_of_best(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Softmax over the best ``k`` logits only, in fp32 (Granite)."""
    logits = ops.cast(_logits(model, layer, x), FULL)
    values, indices = routing.topk(logits, mixture(model).per_token)
    return logits, ops.cast(ops.softmax(values), x.itemsize), indices


def softmax_of_best_biased(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Softmax over the best ``k`` logits of a linear with bias, in the logits' type (gpt-oss)."""
    name = layer.name_of("router").removesuffix(".weight")
    logits = linear(x, matrix(layer), layer.weight(f"{name}.bias"), mixture(model).experts)
    values, indices = routing.topk(logits, mixture(model).per_token)
    return logits, ops.keeps_output(values), indices


def softmax_limited(model: Model, layer: Layer, x: Tensor) -> Routed:
    """DeepSeek-V2: logits in fp32, softmax, optionally only the best groups of experts, scaled weights."""
    logits = _logits_in_full(model, layer, x)
    scores = ops.softmax(logits, FULL)
    if fact(model, "topk_method", "greedy") == "group_limited_greedy":
        scores = _best_groups_only(model, scores, routing.greatest(scores, int(fact(model, "n_group", 1))))
    values, indices = routing.topk(scores, mixture(model).per_token)
    values = ops.scale(values)
    return logits, values, indices


def sigmoid_limited(model: Model, layer: Layer, x: Tensor) -> Routed:
    """DeepSeek-V3: sigmoid scores, a bias only for the choice, groups by their two best experts, scaled weights."""
    logits = _logits_in_full(model, layer, x)
    scores = ops.sigmoid(logits)
    choice = _widened(scores)
    groups = int(fact(model, "n_group", 8 if model.arch.model_type in EIGHT_GROUPS else 1))
    best, members = routing.topk(choice, 2 * groups)
    sums = routing.total(best, groups)
    del best
    choice = _best_groups_only(model, choice, sums)
    indices = routing.topk(choice, mixture(model).per_token)[1]
    values = routing.gather(scores, indices)
    if fact(model, "norm_topk_prob", model.arch.model_type != "dots1"):
        denominator = ops.shift(routing.total(values))
        values = routing.divide_in_place(values, denominator)
    values = ops.scale(values)
    del members
    return logits, values, indices


EIGHT_GROUPS = frozenset({"deepseek_v3", "deepseek_v32", "kimi_k2"})
"""Types whose class default is eight groups of experts."""


def _best_groups_only(model: Model, scores: Tensor, sums: Tensor) -> Tensor:
    default = 4 if model.arch.model_type in EIGHT_GROUPS else 1
    chosen = routing.topk(sums, int(fact(model, "topk_group", default)))[1]
    groups = sums.tape.like(sums)
    spread = sums.tape.like(scores) if sums.width > 1 else None
    out = routing.masked_fill(scores, routing.complement(scores))
    del chosen, groups, spread
    return out


def sigmoid_biased(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Sigmoid scores in fp32, a bias only for the choice, always normalised (MiniMax-M2)."""
    weight = matrix(layer)
    logits = linear(ops.cast(x, weight.itemsize), weight, None, mixture(model).experts)
    scores = ops.sigmoid(ops.cast(logits, FULL))
    choice = ops.shift(scores)
    best, indices = routing.topk(choice, mixture(model).per_token)
    values = routing.gather(scores, indices)
    values = routing.divide_in_place(values, routing.total(values))
    del best
    return logits, values, indices


def sigmoid_out_of_place(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Sigmoid scores in the logits' type, an fp32 bias for the choice, divided into a new tensor, scaled (LFM2)."""
    logits = _logits(model, layer, x)
    scores = ops.sigmoid(logits)
    choice = ops.cast(ops.shift(scores.view()), FULL) if scores.itemsize == FULL else _widened(scores)
    best, indices = routing.topk(choice, mixture(model).per_token)
    values = routing.gather(scores, indices)
    if fact(model, "norm_topk_prob", True):
        values = routing.divide(values, ops.shift(routing.total(values)))
    values = ops.scale(values)
    del best
    return logits, values, indices


def _widened(x: Tensor) -> Tensor:
    """``x + fp32 vector``: the sum is fp32."""
    out = x.tape.like(x, FULL)
    if x.needs:
        x.tape.attach(out, (x,), (), lambda g: (g,))
    return out


def softmax_statics(model: Model, layer: Layer, x: Tensor) -> Routed:
    """ERNIE 4.5: everything in fp32 outside autocast, a bias for the choice, divided by the clamped sum."""
    tape = model.tape
    outer, tape.autocast = tape.autocast, False
    logits = linear(ops.cast(x, FULL), ops.cast(matrix(layer, FULL), FULL), None, mixture(model).experts)
    scores = ops.softmax(logits, FULL)
    best, indices = routing.topk(ops.shift(scores), mixture(model).per_token)
    values = routing.gather(scores, indices)
    values = routing.divide(values, ops.keeps_input(routing.total(values)))
    tape.autocast = outer
    del best
    return logits, ops.cast(values, x.itemsize), indices


def softmax_linear(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Hunyuan: an fp32 linear module (an adapter may sit on it), softmax, normalised in place."""
    name = layer.name_of("router").removesuffix(".weight")
    if matrix(layer, FULL).itemsize == FULL:
        x = ops.cast(x, FULL)
    logits = layer.linear(x, name)
    scores = ops.softmax(logits, FULL)
    values, indices = routing.topk(scores, mixture(model).per_token)
    values = routing.divide_in_place(values, routing.total(values))
    return logits, ops.cast(values, logits.itemsize), indices


def sparse_mixer(model: Model, layer: Layer, x: Tensor) -> Routed:
    """Phi-3.5-MoE: two experts drawn one after the other, each among the logits near the greatest."""
    logits = _logits(model, layer, x)
    first, chosen = _drawn(logits, logits)
    second, _ = _drawn(_without(logits, chosen), logits)
    weights = ops.concat([first, second])
    return logits, weights, ops.integers(chosen, chosen.rows, 2)


def _drawn(scores: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """The weight and the index of one expert; in training its gradient is estimated from two points."""
    tape = scores.tape
    near = routing.masked_fill(scores, tape.like(scores, BOOL))
    index = ops.integers(scores, scores.rows)
    gates = ops.softmax(near)
    picked = routing.gather(gates, index)
    if not logits.needs:
        return picked, index
    midpoint = tape.like(picked)
    kept = [tape.save(tensor) for tensor in (picked, index, gates, midpoint)]
    out = tape.like(picked)
    shape, single = ops.shape_of(logits), ops.shape_of(picked)
    return tape.attach(out, (logits, picked), kept, lambda g: (tape.new(*shape), tape.new(*single))), index


def _without(logits: Tensor, index: Tensor) -> Tensor:
    """The logits with one of each row set to minus infinity."""
    tape = logits.tape
    kept = [tape.save(index)] if logits.needs else []
    out = tape.like(logits)
    shape = ops.shape_of(logits)
    return tape.attach(out, (logits,), kept, lambda g: (tape.new(*shape),)) if kept else out
