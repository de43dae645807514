"""What lives at the peak, block by block, each with its reason."""

from functools import lru_cache

from estimator import caches, reasons, standing
from estimator.architecture import Architecture
from estimator.optimizer_states import Choice
from estimator.parallel.layout import Layout
from estimator.parallel.words import queued, shared_out
from estimator.schema import Block
from estimator.setting import Peak, Setting, base_of
from estimator.stages.generation import cast_bytes, score_bytes
from estimator.step.program import Counts, Moment, composition
from estimator.step.regime import Regime


def at_peak(setting: Setting, peak: Peak, extra: int) -> list[Block]:
    """What lives at the peak, largest first; sums to the allocated peak."""
    blocks = _loading(setting, peak) if peak.phase == "load" else _standing(setting, peak) + _at_work(setting, peak)
    if peak.phase == "optimizer_step" and peak.base.step_bytes:
        blocks.append(reasons.block("optimizer_temp", peak.base.step_bytes, *reasons.TEXTS["optimizer_temp"]))
    if extra:
        blocks.append(reasons.block("workspace", extra, *reasons.workspaces(extra, setting.regime.training)))
    return sorted(_merged(blocks), key=lambda block: -block.bytes)


def _loading(setting: Setting, peak: Peak) -> list[Block]:
    held = _held(setting.arch, setting.regime, setting.optimizer, setting.shares, setting.layout)
    blocks = [block for block in held if block.item == "weights"]
    passing = peak.live - sum(block.bytes for block in blocks)
    return [*blocks, reasons.block("other", passing, *reasons.TEXTS["loading"])]


def _standing(setting: Setting, peak: Peak) -> list[Block]:
    blocks = list(_held(setting.arch, setting.regime, setting.optimizer, setting.shares, setting.layout))
    if peak.phase not in ("prefill", "decode"):
        blocks.append(reasons.block("gradients", peak.waiting, *standing.waiting_of(peak.base.trained, peak.waiting)))
        blocks.append(reasons.block("communication", peak.communication, *reasons.TEXTS["buckets"]))
    if peak.phase != "optimizer_step":
        blocks.append(reasons.block("activations", peak.queued, *queued(setting.layout)))
    return [block for block in blocks if block.bytes]


@lru_cache(maxsize=512)
def _held(arch: Architecture, regime: Regime, optimizer: Choice, shares: int, layout: Layout) -> tuple[Block, ...]:
    """Blocks of what does not depend on batch and length."""
    base = base_of(arch, regime, optimizer, shares, layout)
    states = base.optimizer.states
    return (
        *(shared_out(standing.weights_block(item, base.weights), layout) for item in ("weights", "adapter")),
        reasons.block("optimizer_states", states, *standing.states_of(base.trained, base.optimizer)),
        *(reasons.block(*model) for model in base.standing),
    )


def _at_work(setting: Setting, peak: Peak) -> list[Block]:
    """What the peak's phase allocates: the step's own tensors, the generation's, or an engine beside."""
    online, phase = setting.online, peak.phase
    if online is None:
        return _traced(setting, peak, phase)
    beside = [reasons.block("other", online.bytes, online.why, online.why_zh)] if online.bytes else []
    if phase not in ("prefill", "decode"):
        return _traced(setting, peak, phase) + (beside if not online.sleeps else [])
    if peak.generated is None:
        return beside
    casts = cast_bytes(setting.arch, setting.regime)
    copies = [reasons.block("weight_casts", casts, *reasons.TEXTS["weight_casts"])] if casts else []
    scores = score_bytes(setting.arch, online, peak.generated[0].at) if phase == "decode" else 0
    copies += [reasons.block("logits_loss", scores, *reasons.TEXTS["scores"])] if scores else []
    return _traced(*peak.generated, phase) + copies


def _traced(setting: Setting, peak: Peak, phase: str) -> list[Block]:
    moment = peak.walked.peaks.get(phase) or Moment(peak.walked.end, len(peak.program.segments), 0, Counts())
    alive = composition(peak.program, moment)
    whole = all(segment.phase != "backward" for segment in peak.program.segments[: moment.segment])
    cached = caches.at_the_end(setting, peak) if phase == "decode" else None
    situation = reasons.Situation(setting.arch, setting.at, setting.regime, phase, whole, cached)
    return reasons.blocks(peak.program, peak.walked, alive, situation)


def _merged(blocks: list[Block]) -> list[Block]:
    merged: dict[str, Block] = {}
    for block in blocks:
        known = merged.get(block.item)
        if known is None:
            merged[block.item] = block
        else:
            why = "; ".join(filter(None, (known.why, block.why)))
            why_zh = "；".join(filter(None, (known.why_zh, block.why_zh)))
            merged[block.item] = reasons.block(block.item, known.bytes + block.bytes, why, why_zh)
    return list(merged.values())
