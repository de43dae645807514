"""Floating point operations of one trained token.

Counting as PaLM (appendix B) and litgpt do: a matrix product is 2 operations per weight and token; forward 2N,
gradients of inputs 2N, gradients of weights 2N. Attention is counted in full (not the causal half), as the tables are
that the utilisations in ``data/mfu.toml`` come from.
"""

from dataclasses import dataclass

from estimator.architecture import Architecture
from estimator.inventory import active_parameters, inventory
from estimator.regimes import adapted, tokens_per_row
from estimator.schema import Run

WITHOUT_ATTENTION = ("linear", "ssm", "conv", "none")
"""Kinds of layers without a product of every token with every other."""


@dataclass(frozen=True, slots=True)
class Work:
    """What decides the operations of a token.

    ``parameters`` are those that a token passes (the active ones of a mixture), ``trained`` those with a gradient of
    their own, None for all; ``attention_width`` is the sum over layers of query width x tokens attended to.
    ``passes`` counts how often a row goes through the model beyond the policy's own step (a reference: 1/3 of it).
    """

    parameters: int
    attention_width: float
    trained: int | None = None
    recompute: bool = False
    reference_passes: int = 0


def flops_per_token(work: Work) -> float:
    """Operations for one token of one step: forward, backward, recomputation and reference models."""
    forward = 2 * work.parameters + 4 * work.attention_width
    gradients = 4 * work.parameters if work.trained is None else 2 * work.parameters + 6 * work.trained
    repeated = forward if work.recompute else 0
    return forward + gradients + 8 * work.attention_width + repeated + work.reference_passes * forward


def work_of(run: Run, arch: Architecture, trained: int, recompute: bool) -> Work:
    """The work of a filled run; ``trained`` counts parameters with a gradient, ``recompute``: counted as extra."""
    return Work(
        parameters=active_parameters(arch),
        attention_width=_attention_width(arch, tokens_per_row(run)),
        trained=trained if adapted(run) or run.method == "freeze" else None,
        recompute=recompute,
        reference_passes=1 if _has_reference(run) else 0,
    )


def _attention_width(arch: Architecture, length: int) -> float:
    parts = inventory(arch)
    width = arch.heads * arch.head_dim
    return float(sum(width * _attended(arch, parts.kinds[index].attention, length) for index in parts.layers))


def _attended(arch: Architecture, kind: str, length: int) -> int:
    if kind in WITHOUT_ATTENTION:
        return 0
    window = arch.sliding_window if kind in ("sliding", "chunked") else None
    return min(length, window) if window else length


def _has_reference(run: Run) -> bool:
    """Whether a second, frozen model reads every row too."""
    if run.stage not in ("dpo", "kto", "ppo", "grpo"):
        return False
    preference = run.preference
    return preference is None or (preference.reference != "none" and not preference.precomputed_logps)
