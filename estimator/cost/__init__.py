"""Time and money, pure: how long a job takes on a card, what that costs to rent, and what owning the card costs."""

from estimator.cost.budget import Budget, Line, budget_of, total
from estimator.cost.interruptions import FAST, Checkpointing, waste
from estimator.cost.owning import Cluster, Owning, break_even_utilisation, owning, payback_months
from estimator.cost.speed import Job, Timing, Utilisation, timing, utilisation_of
from estimator.cost.work import Work, flops_per_token, work_of

__all__ = [
    "FAST",
    "Budget",
    "Checkpointing",
    "Cluster",
    "Job",
    "Line",
    "Owning",
    "Timing",
    "Utilisation",
    "Work",
    "break_even_utilisation",
    "budget_of",
    "flops_per_token",
    "owning",
    "payback_months",
    "timing",
    "total",
    "utilisation_of",
    "waste",
    "work_of",
]
