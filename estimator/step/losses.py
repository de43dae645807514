"""The head and the loss, by implementation: what each allocates in the forward and in the backward."""

from collections.abc import Sequence

from estimator.parallel.tensor import split_cross_entropy
from estimator.step import ops
from estimator.step.model import Model, linear
from estimator.step.tape import BOOL, FULL, LONG, Leaf, Tensor

TILE_TOKENS, TILE_VOCAB = 4096, 32768
"""Tile of trl's chunked head (trl 1.16, trl/kernels/chunked_logprob.py)."""

SCALED_LOGITS = frozenset(("granite", "cohere", "cohere2", "falcon_h1"))
"""Model types that multiply or divide their logits by a number."""


def head_weight(model: Model) -> Leaf:
    """The head's matrix: its own, or the embedding's."""
    own = model.top.name_of("head")
    if own:
        return model.top.weight(own)
    return model.stem.weight(model.stem_name)


FULL_LOGITS = frozenset({"mamba", "mamba2", "falcon_mamba", "nemotron_h"})
"""Types that cast their logits to fp32 at once (transformers 5.24)."""


def logits_of(model: Model, hidden: Tensor) -> Tensor:
    """Logits of every position handed in, with the multiplier or final soft cap that the model has."""
    bias = model.top.weight("lm_head.bias") if model.top.has("lm_head.bias") else None
    tensor = model.runtime.tensor
    if tensor is not None:
        logits = tensor.logits(hidden, head_weight(model), model.arch.vocab)
    elif model.arch.model_type in FULL_LOGITS:
        weight = head_weight(model)
        logits = ops.cast(linear(ops.cast(hidden, weight.itemsize), weight, bias, model.arch.vocab), FULL)
    else:
        logits = linear(hidden, head_weight(model), bias, model.arch.vocab)
    model.runtime.after_head(logits)
    if model.arch.model_type in SCALED_LOGITS:
        logits = ops.scale(logits)
    if model.arch.logit_softcap:
        logits = ops.scale(logits)
        logits = ops.tanh(logits)
        logits = ops.scale(logits)
    return logits


def standard(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Transformers' loss: logits to fp32, log-softmax, negative log-likelihood. Returns loss and logits."""
    logits = rebound(model, logits_of(model, hidden))
    if "logits-back" not in model.regime.quirks:
        return _causal(model, logits, labels), logits
    scores = shifted(model, logits) if "shifted-logits" in model.regime.quirks else logits
    loss = cross_entropy(scores, labels.tape.new("Tm", 1, LONG))
    return loss, ops.cast(logits, hidden.itemsize)


def rebound(model: Model, logits: Tensor) -> Tensor:
    """In older models' code the fp32 logits take the half ones' place (see ``estimator.habits``)."""
    return ops.cast(logits, FULL) if "rebound-logits" in model.regime.quirks else logits


def shifted(model: Model, logits: Tensor) -> Tensor:
    """``logits[..., :-1, :].contiguous()`` before transformers 4.49: a copy, but of a single sequence."""
    part = ops.part_rows(logits, "Tm")
    return part if model.regime.single else ops.copy(part)


def _causal(model: Model, logits: Tensor, labels: Tensor) -> Tensor:
    """``ForCausalLMLoss``: the padded labels stay alive beside their shifted copy."""
    if model.runtime.tensor is not None and model.runtime.tensor.loss_parallel:
        model.runtime.after_forward(logits)  # the loss is the loop's own
        padded = labels.tape.new("T1", 1, LONG)
        targets = _shifted(model, padded)
        del padded
        return split_cross_entropy(ops.cast(logits, FULL), targets)
    logits = logits if "half-loss" in model.regime.quirks else ops.cast(logits, FULL)
    if "shifted-logits" in model.regime.quirks:
        return cross_entropy(shifted(model, logits), labels.tape.new("Tm", 1, LONG))
    padded = labels.tape.new("T1", 1, LONG)
    return cross_entropy(logits, _shifted(model, padded))


def _shifted(model: Model, padded: Tensor) -> Tensor:
    """``padded[..., 1:].contiguous()``: a view of one sequence, a copy of several."""
    return padded if model.regime.single else padded.tape.new("T", 1, LONG)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Log-softmax (kept) and negative log-likelihood, whose backward fills a tensor of the logits' size."""
    tape = logits.tape
    scores = ops.full(ops.keeps_output(logits))
    rows, width, size = ops.shape_of(scores)
    loss, weight = tape.new("1", 1, FULL), tape.new("1", 1, FULL)
    kept = [tape.save(t) for t in (scores, targets, weight)]
    return tape.attach(loss, (scores,), kept, lambda g: (tape.new(rows, width, size),))


def chunked(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Trl's chunked head: tiles of logits, gradients accumulated in fp32 in the backward."""
    tape, weight, regime = model.tape, head_weight(model), model.regime
    kept_hidden = ops.part_rows(hidden, "Tm")
    targets = tape.new("Tm", 1, LONG)
    tile_rows, tile = ("min", "Tm", TILE_TOKENS), min(model.arch.vocab, TILE_VOCAB)
    compute = 2 if regime.autocast else hidden.itemsize
    flat = kept_hidden if model.regime.single else ops.copy(kept_hidden)
    running = [tape.new("Tm", 1, FULL) for _ in range(7)]
    buffer = tape.new(tile_rows, TILE_VOCAB, compute)
    tile_hidden = tape.new(tile_rows, model.arch.hidden, compute) if flat.itemsize != compute else None
    slices = [] if compute == weight.itemsize else [tape.new("1", tile * model.arch.hidden, compute, "weight_casts")]
    del slices
    normaliser, result = tape.new("Tm", 1, FULL), tape.new("Tm", 1, FULL)
    quotient = tape.new("Tm", 1, FULL)
    entropy = tape.like(quotient)
    del quotient
    conditions = [tape.new("Tm", 1, BOOL) for _ in range(2)]
    best = tape.like(conditions[0])
    del conditions
    kept = [tape.save(t) for t in (flat, weight, targets, normaliser, entropy)]
    need_hidden, need_weight = flat.needs, weight.needs
    rows, width, size = ops.shape_of(flat)
    elements, weight_size, features = weight.width, weight.itemsize, model.arch.hidden
    parts = (tile, min(tile, model.arch.vocab - tile))[: 1 + (model.arch.vocab > tile)]  # the last one's slice lives on
    del running, buffer, best, tile_hidden

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grad_hidden = tape.new(rows, width, FULL) if need_hidden else None
        grad_weight = tape.new("1", elements, FULL, "gradients") if need_weight else None
        buffer = tape.new(tile_rows, TILE_VOCAB, compute)
        incoming = tape.new("Tm", 1, FULL)
        tiles = [tape.new(tile_rows, features, compute)] if size != compute else []
        if compute != weight_size:
            tiles += [tape.new("1", part * features, compute, "weight_casts") for part in parts]
        result = ops.cast(grad_hidden, size) if grad_hidden is not None else None
        weight_result = ops.cast(grad_weight, weight_size) if grad_weight is not None else None
        del buffer, incoming, tiles
        return result, weight_result

    tape.attach(result, (flat, weight), kept, backward)
    return ops.scale(ops.negate(ops.mean_all(result))), None


def fused(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Liger's fused linear cross-entropy: gradients are made in the forward, one chunk of logits at a time."""
    tape, weight = model.tape, head_weight(model)
    padded = labels.tape.new("T1", 1, LONG)
    targets = _shifted(model, padded)
    del padded
    x, w = ops.autocast(hidden), ops.autocast(weight)
    grad_hidden = tape.like(x)
    grad_weight = tape.like(w, item="gradients") if w.needs else None
    result = tape.new("T", 1, FULL)
    chunk = tape.new(("liger", "T", model.arch.vocab, model.arch.hidden), model.arch.vocab, x.itemsize)
    del chunk
    loss = tape.new("1", 1, FULL)
    del result
    kept = [tape.save(t) for t in (grad_hidden, grad_weight) if t is not None]
    del targets

    holders = (grad_hidden, grad_weight)
    return tape.attach(loss, (x, w), kept, lambda g: holders), None


def fused_logits(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Liger's cross-entropy on whole logits, in fp32 as transformers gives them; the gradient is written over them."""
    tape = model.tape
    logits = rebound(model, logits_of(model, hidden))
    padded = labels.tape.new("T1", 1, LONG)
    targets = _shifted(model, padded)
    scores = logits if {"half-logits", "half-loss"} & set(model.regime.quirks) else ops.cast(logits, FULL)
    if "shifted-logits" in model.regime.quirks:
        scores = shifted(model, scores)
    rows, width, size = ops.shape_of(scores)
    losses = tape.new(rows, 1, size)
    checked = [tape.new(rows, 1, BOOL), tape.new(rows, 1, LONG)]
    del checked
    loss = tape.new("1", 1, FULL)
    del losses, targets, padded
    kept = [tape.save(scores)]
    tape.attach_in_place(loss, (scores,), kept, lambda g, storage: (Tensor(tape, storage, rows, width, size),))
    return loss, logits


def compiled(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """The standard loss in a compiled graph: fp32 logits are never written, the backward makes them from the half ones.

    Read in what torch 2.13's inductor generates for transformers' loss: the logits as the head left them, two numbers
    per row, and a gradient of the logits' type.
    """
    tape = model.tape
    logits = logits_of(model, hidden)
    padded = labels.tape.new("T1", 1, LONG)
    targets = _shifted(model, padded)
    del padded
    rows, width, size = ops.shape_of(logits)
    loss = tape.new("1", 1, FULL)
    kept = [tape.save(logits), tape.save(targets), tape.new(rows, 2, FULL)]
    tape.attach(loss, (logits,), kept, lambda g: (tape.new(rows, width, size),))
    return loss, logits


LOSSES = {
    "standard": standard,
    "chunked": chunked,
    "fused": fused,
    "fused-ce-logits": fused_logits,
    "compiled": compiled,
}
