"""Which optimizer a run uses, and how: from the run's fields and the method that is one."""

from estimator.architecture import Architecture
from estimator.in_backward import IN_BACKWARD
from estimator.optimizer_states import Choice
from estimator.schema import Run

LOW_RANK = {
    "galore": {"adamw-8bit": "galore-8bit", "adafactor": "galore-adafactor"},
    "apollo": dict[str, str](),
}
NONE = Choice("sgd", None, False)
"""No optimizer at all."""


def choice_of(run: Run, arch: Architecture) -> Choice:
    """The optimizer of a training run. ``details`` may carry galore-torch's and apollo-torch's own names."""
    details = run.details or {}
    rank, targets = details.get("rank"), details.get("low_rank_targets", "all-linear")
    return Choice(
        name=optimizer_name(run),
        implementation="foreach" if run.optimizer_impl == IN_BACKWARD else run.optimizer_impl,
        clipping=bool(run.gradient_clipping),
        rank=rank if isinstance(rank, int) and rank > 0 else 128,
        targets=ALIASES.get(targets, targets) if isinstance(targets, str) else tuple(targets),
        per_tensor=details.get("scale_type") == "tensor",
        embeddings_32bit=bool(details.get("embedding_states_32bit")),
        hidden=arch.hidden,
        heads=arch.heads,
    )


ALIASES = {"attn": "attention", "all": "all-linear"}


def optimizer_name(run: Run) -> str:
    """The optimizer, or the method that is one."""
    name = run.optimizer or "adamw"
    method = str(run.method)
    if method in LOW_RANK:
        return LOW_RANK[method].get(name, method)
    if method == "lomo":
        return name if name in ("lomo", "adalomo") else "lomo"
    return "badam" if method == "badam" else name
