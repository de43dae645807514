"""Estimate against observation: the difference in named parts."""

from estimator.schema import Estimate
from knowledge.diagnosis import Explained, Gap
from knowledge.facts import Facts

NOTABLE = 64 * 2**20
NOT_AT_THE_PEAK = ("load", "init", "save", "resume", "export", "evaluation", "data_loading")


def gap_between(facts: Facts, found: Estimate | None) -> Gap | None:
    """The gap between the allocated peak that was estimated and what the card would have had to hold.

    Observed is what the message says was in use, with the request that failed. The parts add up to the difference:
    unused cache and what lies outside PyTorch are read from the message, choices that were assumed otherwise are
    estimated, and what none of them explains is told as such (negative where the estimate is above).
    """
    if found is None or found.per_gpu is None or "allocated" not in facts or facts.get("phase") in NOT_AT_THE_PEAK:
        return None
    if found.run and found.run.task == "serve":  # a server takes what there is
        return None
    tried, unused, outside = (facts.get(name) or 0 for name in ("tried", "unused_cache", "outside"))
    observed = facts.get("allocated") + tried + unused + outside
    estimated = found.per_gpu.allocated_peak
    parts = [Explained(id="unused_cache", bytes=unused), Explained(id="outside_pytorch", bytes=outside)]
    rest = facts.get("allocated") + tried - estimated
    chosen = _nearest_choice(found, rest)
    if chosen:
        parts.append(chosen)
        rest -= chosen.bytes
    parts.append(Explained(id="unexplained", bytes=rest))
    return Gap(estimated=estimated, observed=observed, explained_by=[one for one in parts if one.bytes])


def _nearest_choice(found: Estimate, rest: int) -> Explained | None:
    """The assumption that, had it been otherwise, leaves the least unexplained."""
    if found.per_gpu is None:
        return None
    peak = found.per_gpu.allocated_peak
    choices = [
        Explained(id="-".join(f"{name} {value}" for name, value in one.change.items()), bytes=one.allocated_peak - peak)
        for one in found.alternatives
    ]
    best = min(choices, key=lambda one: abs(rest - one.bytes), default=None)
    return best if best and abs(rest - best.bytes) < abs(rest) - NOTABLE else None
