"""What torch.compile changes of a training step: which parts run fused, and how the loss is made."""

from estimator.habits import OWN_MODELS
from estimator.schema import Run

FUSED_BY_COMPILER = ("norm", "rope", "mlp")
"""What a compiled graph keeps is what these fused kernels keep.

Elementwise chains are made again from the results of matrix products and from the residual stream: torch 2.13's
min-cut partitioner on Llama blocks of transformers 5.24, whose saved tensors were listed beside the eager ones.
"""

WITH_OWN_LOSS = ("sft", "pretrain")
"""Stages that train on the loss that the model itself returns."""


def fused_parts(run: Run) -> tuple[str, ...]:
    """Parts that run as fused kernels."""
    given = tuple(run.fused_kernels or ())
    return given + tuple(name for name in FUSED_BY_COMPILER if run.compile and name not in given)


def loss_of(run: Run) -> str:
    """The loss's implementation: the Trainer compiles a whole model with its loss, unless a stage has its own.

    Frameworks with models of their own compile layer by layer, and the loss apart or not at all.
    """
    loss = run.loss or "standard"
    apart = run.stage not in (None, *WITH_OWN_LOSS) or run.framework in OWN_MODELS
    spread = run.parallel is not None and (run.parallel.tensor or 1) > 1
    return "compiled" if run.compile and loss == "standard" and not apart and not spread else loss
