"""Optimizers whose step runs inside the backward, so that gradients do not wait for one another."""

from estimator.schema import Run
from estimator.step.fused_update import AT_ONCE

IN_BACKWARD = "in-backward"


def steps_in_backward(run: Run) -> bool:
    """Whether every parameter has an optimizer of its own in a hook behind its gradient (``optimizer_impl``).

    Engines for several cards reduce gradients later; there they are counted as waiting.
    """
    return run.optimizer_impl == IN_BACKWARD and (run.parallel is None or run.parallel.engine in (None, "none"))


def update_of(run: Run) -> str | None:
    """The update inside the backward as ``Regime.update`` names it.

    AdamW's step over one parameter makes its square root (foreach, torch's default on cards); others make nothing.
    """
    if run.method == "lomo":
        return "adalomo" if run.optimizer == "adalomo" else "lomo"
    return f"{AT_ONCE}{int(run.optimizer in ('adamw', 'adam'))}" if steps_in_backward(run) else None
