"""Estimate against observation: the difference in named parts."""

from estimator.schema import Estimate, PerGpu
from knowledge.diagnosis import Explained, Gap
from knowledge.facts import Facts

NOTABLE = 64 * 2**20
NOT_AT_THE_PEAK = ("load", "init", "save", "resume", "export", "evaluation", "data_loading")
FIRST_STEP = ("forward", "loss", "backward", "optimizer_step", "unknown")
"""Phases in which a run may fail before its first step has created the optimizer's states."""
HALF = ("bf16", "fp16")


def gap_between(facts: Facts, found: Estimate | None) -> Gap | None:
    """The gap between the allocated peak that was estimated and what the card would have had to hold.

    Observed is what the message says was in use, with the request that failed. The parts add up to the difference:
    unused cache and what lies outside PyTorch are read from the message; a run that failed earlier than at its peak
    had not allocated all of it; choices that were assumed otherwise are estimated; and what none of them explains is
    told as such.
    """
    if found is None or found.per_gpu is None or "allocated" not in facts or facts.get("phase") in NOT_AT_THE_PEAK:
        return None
    if found.run and found.run.task == "serve":  # a server takes what there is
        return None
    tried, unused, outside, others = (facts.get(name) or 0 for name in ("tried", "unused_cache", "outside", "others"))
    others = others if NOTABLE < others <= outside else 0
    needed, peak = facts.get("allocated") + tried, found.per_gpu.allocated_peak
    parts = [
        Explained(id="unused_cache", bytes=unused),
        Explained(id="other_processes", bytes=others),
        Explained(id="outside_pytorch", bytes=outside - others),
        Explained(id="before_the_peak", bytes=_so_far(found.per_gpu, facts, needed) - peak),
    ]
    rest = needed - peak - parts[-1].bytes
    if chosen := _nearest_choice(_choices(found, facts), rest):
        parts.append(chosen)
        rest -= chosen.bytes
    parts.append(Explained(id="not_reached" if rest < 0 else "unexplained", bytes=rest))
    observed = needed + unused + outside
    return Gap(estimated=peak, observed=observed, explained_by=[one for one in parts if one.bytes])


def _so_far(per_gpu: PerGpu, facts: Facts, needed: int) -> int:
    """The estimated peak of the phase that failed, where the run needed less than the peak of the whole step."""
    phases: dict[str, int] = {one.phase: one.allocated_peak for one in per_gpu.phases}
    of_phase = phases.get(str(facts.get("phase")), per_gpu.allocated_peak)
    return of_phase if needed < per_gpu.allocated_peak else per_gpu.allocated_peak


def _choices(found: Estimate, facts: Facts) -> list[Explained]:
    """What may have been otherwise than assumed, with the bytes that it adds."""
    if found.per_gpu is None:
        return []
    peak = found.per_gpu.allocated_peak
    choices = [
        Explained(id=" ".join([name, *([value] if isinstance(value, str) else value)]), bytes=one.allocated_peak - peak)
        for one in found.alternatives
        for name, value in one.change.items()
    ]
    parts: dict[str, int] = {block.item: block.bytes for block in found.per_gpu.at_peak}
    if facts.get("phase") in FIRST_STEP and (facts.get("steps_done") or 0) <= 1:
        choices.append(Explained(id="no_states_yet", bytes=-parts.get("optimizer_states", 0)))
    if found.run and found.run.precision in HALF and not found.run.weight_format:
        choices.append(Explained(id="weights_in_fp32", bytes=parts.get("weights", 0)))
    return choices


def _nearest_choice(choices: list[Explained], rest: int) -> Explained | None:
    """The assumption that, had it been otherwise, leaves the least unexplained."""
    best = min(choices, key=lambda one: abs(rest - one.bytes), default=None)
    return best if best and abs(rest - best.bytes) < abs(rest) - NOTABLE else None
