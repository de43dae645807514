"""An engine's memory told as an estimate: the card's counters, the breakdown, whether it starts, what is possible."""

from estimator import card, positions, reasons, standing
from estimator.architecture import Architecture
from estimator.catalogue import GpuMatch
from estimator.downgrades.around import Outcome
from estimator.schema import (
    Assumption,
    Block,
    Estimate,
    Host,
    Interval,
    Largest,
    PerGpu,
    PhasePeak,
    Range,
    Run,
    ServingMemory,
)
from estimator.serving import solve
from estimator.serving.engines import check_engine, memory_of
from estimator.serving.facts import gib
from estimator.serving.memory import Memory
from estimator.serving.plan import Plan, plan_of
from estimator.serving.shown import device
from estimator.serving.startup import needs_offload, startup_notes


def serving_estimate(
    run: Run, arch: Architecture, gpu: GpuMatch | None, usable: int | None, assumptions: list[Assumption]
) -> Estimate:
    """The estimate of a run of a serving engine whose defaults are filled."""
    check_engine(str(run.engine))
    middle = plan_of(run, arch, gpu)
    plan = middle.least
    found = memory_of(plan)
    printed = found if plan is middle else memory_of(middle)
    result = Estimate(
        id=None, run=run, assumptions=assumptions, notes=list(found.notes), per_gpu=per_gpu(plan, found, usable),
        serving=serving_memory(printed, found), host=Host(ram=found.host),
    )  # fmt: skip
    if usable is not None:
        _solved(result, plan, found, usable)
    return result


def outcome(run: Run, arch: Architecture, gpu: GpuMatch, usable: int) -> Outcome | None:
    """What a changed run needs, for the search of moves; None where the host's memory is too small for it."""
    plan = plan_of(run, arch, gpu).least
    found = memory_of(plan)
    if run.host_ram_gib is not None and found.host > gib(run.host_ram_gib):
        return None
    needed, shown = needed_of(found), device(plan, found, usable)
    verdict = card.verdict_of(shown.expected, shown.high, usable)
    return Outcome(needed, (shown.low, shown.expected, shown.high), verdict, (needed,), found.host)


def _solved(result: Estimate, plan: Plan, found: Memory, usable: int) -> None:
    """Whether it fits, and what would."""
    assert result.per_gpu is not None and result.serving is not None
    result.fit = card.fit(result.per_gpu.device_peak, usable)
    serving = result.serving
    users, length = solve.most_users(plan, found, usable), solve.longest_request(plan, found, usable)
    serving.users_possible = users if found.cache.users is None else found.cache.users
    serving.max_len_possible = solve.longest_alone(plan, found, usable, length)
    serving.layers_possible = solve.layers_possible(plan, usable)
    serving.best_format = solve.best_format(plan, usable, result.fit.verdict == "fits")
    if plan.engine in solve.SHARED:
        serving.utilization_needed = solve.utilization_needed(plan, usable)
    new = int(plan.run.new_tokens or 0)
    result.max, beyond = positions.capped(Largest(micro_batch=users, seq_len=max(length - new, 0)), plan.run, plan.arch)
    result.notes = startup_notes(plan, found, usable) + result.notes
    if (offload := needs_offload(plan, serving.layers_possible, usable)) is not None:
        result.notes.insert(0, offload)
    result.notes += [Assumption(field=one[0], value=one[1], why=one[2], why_zh=one[3]) for one in beyond]


def per_gpu(plan: Plan, found: Memory, usable: int | None) -> PerGpu:
    """What one card holds."""
    allocated, (below, above) = found.allocated, found.uncertain
    if found.left is not None and found.left > 0:
        # What activations take more, the cache has less: the sum is the engine's share of the card.
        below, above = below // 4, above // 4
    held = Range(low=allocated - below, expected=allocated, high=allocated + above)
    return PerGpu(
        allocated_peak=allocated,
        reserved_peak=Range(low=allocated, expected=allocated, high=held.high),
        device_peak=device(plan, found, usable),
        interval=Interval(low=held.low, high=held.high, coverage=0.9),
        peak_phase=found.peak_phase,
        phases=phases(found),
        at_peak=blocks(found),
        steady=found.weights.bytes + found.cache.bytes,
    )


def phases(found: Memory) -> list[PhasePeak]:
    """Loading, and the phase of the peak where that is another."""
    if found.peak_phase == "load":
        return [PhasePeak(phase="load", allocated_peak=found.allocated)]
    loaded = PhasePeak(phase="load", allocated_peak=found.weights.bytes)
    return [loaded, PhasePeak(phase=found.peak_phase, allocated_peak=found.allocated)]


def blocks(found: Memory) -> list[Block]:
    """The breakdown, largest first; sums to the allocated peak."""
    listed = [standing.weights_block("weights", found.weights)]
    listed.append(reasons.block("kv_cache", found.cache.bytes, *found.cache.why))
    listed += [reasons.block(share.item, share.bytes, *share.why) for share in found.shares]
    return sorted((block for block in listed if block.bytes), key=lambda block: -block.bytes)


def needed_of(found: Memory) -> int:
    """What all requests need at once, however large a share of the card the engine takes."""
    return found.weights.bytes + found.beside + found.cache.needed


def serving_memory(found: Memory, least: Memory) -> ServingMemory:
    """What the engine would print; what is possible, and needed, on the smallest card of the size."""
    cache = found.cache
    printed = cache.bytes if found.printed_cache is None else found.printed_cache
    unsure = found.uncertain if found.left is not None else (0, 0)
    return ServingMemory(
        weights_bytes=found.weights.bytes if found.printed_weights is None else found.printed_weights,
        kv_bytes=printed,
        kv_bytes_per_token=cache.per_token,
        kv_tokens=cache.tokens,
        concurrency=cache.concurrency,
        max_len_possible=least.cache.longest,
        activation_peak_bytes=None if found.compute_buffer is not None else found.activation,
        non_torch_bytes=found.non_torch,
        cuda_graph_bytes=found.graphs,
        compute_buffer_bytes=found.compute_buffer,
        kv_bytes_low=max(printed - unsure[0], 0),
        kv_bytes_high=printed + unsure[1],
        users_possible=least.cache.users,
        layers_on_card=found.layers_on_card,
        needed_bytes=needed_of(least),
    )
