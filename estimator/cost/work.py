"""Floating point operations of one trained token.

Counting as PaLM (appendix B) and litgpt do: a matrix product is 2 operations per weight and token; forward 2N,
gradients of inputs 2N, gradients of weights 2N. Attention is counted in full (not the causal half), as the tables are
that the utilisations in ``data/mfu.toml`` come from.
"""

from dataclasses import dataclass

from estimator.architecture import Architecture
from estimator.inventory import active_parameters, inventory
from estimator.regimes import adapted, checkpointing, trainable, trainable_layers, training_regime
from estimator.schema import Lengths, Run
from estimator.stages.rows import reference_of
from estimator.trainables import trainables

WITHOUT_ATTENTION = ("linear", "ssm", "conv", "none")
"""Kinds of layers without a product of every token with every other."""


@dataclass(frozen=True, slots=True)
class Work:
    """What decides the operations of a token.

    ``parameters`` are those that a token passes (the active ones of a mixture), ``trained`` those of them with a
    gradient of their own (None: all), ``adapters`` come on top and all train. ``reached``: the share of the model that
    the backward goes through (below the lowest layer that trains it ends). ``attention_width`` is the sum over layers
    of query width x tokens attended to. ``recompute`` is the share of the forward that runs again, and
    ``attention_again`` that of the attention alone. ``forward_passes`` counts further forwards of a row: a reference,
    log-probabilities of the policy before its step.
    """

    parameters: int
    attention_width: float
    trained: int | None = None
    recompute: float = 0.0
    forward_passes: float = 0.0
    adapters: int = 0
    reached: float = 1.0
    attention_again: float = 0.0


def flops_per_token(work: Work) -> float:
    """Operations for one token of one step: forward, backward, recomputation and further forwards."""
    weights, attention = work.parameters + work.adapters, work.attention_width
    forward = 2 * weights + 4 * attention
    of_inputs = work.reached * (2 * weights + 8 * attention)
    of_weights = 2 * (work.adapters + (work.parameters if work.trained is None else work.trained))
    again = work.recompute * forward + work.attention_again * 4 * attention
    return forward + of_inputs + of_weights + again + work.forward_passes * (2 * work.parameters + 4 * attention)


def work_of(run: Run, arch: Architecture, asked_checkpointing: str | bool | None) -> Work:
    """The work of a filled run.

    ``asked_checkpointing`` is what was asked for in so many words: the tables of utilisations already hold what one
    would normally pick, so recomputation is extra work only then.
    """
    again, attention_again = _repeated(asked_checkpointing)
    own, adapters = _trained(run, arch)
    return Work(
        parameters=active_parameters(arch),
        attention_width=attention_width(arch, mean_length(run)),
        trained=own,
        recompute=again,
        forward_passes=_forward_passes(run),
        adapters=adapters,
        reached=_reached(run, arch),
        attention_again=attention_again,
    )


def mean_length(run: Run) -> float:
    """Tokens of a row, the mean of unequal ones."""
    return run.seq_len.mean if isinstance(run.seq_len, Lengths) else float(run.seq_len or 0)


def attention_width(arch: Architecture, length: float) -> float:
    """Sum over layers of query width x tokens attended to."""
    parts = inventory(arch)
    width = arch.heads * arch.head_dim
    return sum(width * _attended(arch, parts.kinds[index].attention, length) for index in parts.layers)


def _attended(arch: Architecture, kind: str, length: float) -> float:
    if kind in WITHOUT_ATTENTION:
        return 0
    window = arch.sliding_window if kind in ("sliding", "chunked") else None
    return min(length, window) if window else length


def _trained(run: Run, arch: Architecture) -> tuple[int | None, int]:
    """Own parameters with a gradient (None: all) and those of adapters."""
    found = trainables(inventory(arch), training_regime(run, arch))
    if adapted(run):
        return 0, sum(one.numel * one.times for one in found if one.adapter)
    if trainable(run) == "all":
        return None, 0
    return min(sum(one.numel * one.times for one in found), active_parameters(arch)), 0


def _reached(run: Run, arch: Architecture) -> float:
    """The share of the layers that the backward goes through; BAdam's block wanders, half of them in the mean."""
    if run.method == "badam":
        return 0.5
    return min(1.0, trainable_layers(run) / arch.layers) if trainable(run) == "last" else 1.0


def _repeated(asked: str | bool | None) -> tuple[float, float]:
    """Shares of the forward, and of the attention alone, that are computed twice."""
    kind, every = checkpointing(asked)
    if kind in ("full", "offload"):
        return 1.0, 0.0
    if kind == "every":
        return 1 / every, 0.0
    return 0.0, 1.0 if kind.startswith("selective") else 0.0


def _forward_passes(run: Run) -> float:
    """Forwards beyond the step's own.

    The reference (adapters switched off are one too), KTO's mismatched rows, GRPO's old log-probabilities where the
    framework computes them apart. trl 1.16: KTO's kl loss reads the mismatched rows with the policy and, unless
    precomputed, with the reference.
    """
    reference = 0 if reference_of(run) == "none" else 1
    if run.stage == "kto":
        return 1 + 2 * reference
    old = bool((run.details or {}).get("old_logps")) if run.stage == "grpo" else False
    return reference + old
