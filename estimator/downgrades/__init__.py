"""Moves that lower the peak of a run: each with what it saves and costs, and the cheapest chain of them that fits."""

from estimator.downgrades.change import applied
from estimator.downgrades.flags import commands, commands_elsewhere

__all__ = ["applied", "commands", "commands_elsewhere"]
