"""Completions that are generated on the card that trains: by the policy itself, or by vLLM beside it."""

from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.inventory import inventory
from estimator.schema import Run
from estimator.stages.rows import ONLINE, rows_per_item
from estimator.step.program import Dimensions
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF

GIB = 1 << 30


class Online(NamedTuple):
    """How completions are made: ``batches`` micro-batches at once, by which engine.

    ``bytes``: what an engine of its own holds; ``sleeps``: only while it generates (trl's sleep level 2 drops weights
    and cache). ``scores``: the fp32 scores of every generated token are gathered, and then stacked (trl's PPO).
    """

    batches: int = 1
    engine: str = "hf"
    bytes: int = 0
    sleeps: bool = False
    why: str = ""
    why_zh: str = ""
    scores: bool = False


def online_of(run: Run, arch: Architecture, card_bytes: int | None) -> Online | None:
    """The generation of an online stage; None where nothing is generated. ``card_bytes``: the card's total."""
    if run.task != "train" or run.stage not in ONLINE or run.rl is None:
        return None
    engine = run.rl.engine or "hf"
    if engine == "hf":
        return Online(_batches(run), scores=run.stage == "ppo")
    share = run.rl.colocated_share
    if not share:
        return None
    held, why, why_zh = _beside(run, arch, share, card_bytes)
    return Online(_batches(run), engine, held, bool(run.rl.sleep), why, why_zh)


def _batches(run: Run) -> int:
    """Micro-batches whose completions are made together: trl's ``steps_per_generation``, the accumulation's steps."""
    stated = (run.details or {}).get("steps_per_generation")
    return stated if isinstance(stated, int) and stated > 0 else run.grad_accum or 1


def _beside(run: Run, arch: Architecture, share: float, card_bytes: int | None) -> tuple[int, str, str]:
    if card_bytes is not None:
        size = f"{share:.0%} of the card's {card_bytes / GIB:.1f} GiB"
        size_zh = f"{card_bytes / GIB:.1f} GiB 显存的 {share:.0%}"
        text = f"vLLM beside the training, {size}: its own weights, cache and activations"
        return int(share * card_bytes), text, f"与训练同卡的 vLLM，占 {size_zh}：自己的权重、缓存与激活"
    weights = inventory(arch).numel * HALF
    tokens = (run.micro_batch or 1) * rows_per_item(run) * _batches(run) * _length(run)
    cache = tokens * arch.layers * 2 * arch.kv_width * HALF
    return (
        weights + cache,
        f"vLLM beside the training at the least: its own weights and {tokens:,} tokens of cache (its share of the card "
        "is taken once a card is named)",
        f"与训练同卡的 vLLM 的下限：自己的权重加 {tokens:,} 个 token 的缓存（指定显卡后按其占比计算）",
    )


def _length(run: Run) -> int:
    return int(run.seq_len) if isinstance(run.seq_len, int) else int(run.seq_len.max if run.seq_len else 0)


def generation_regime(regime: Regime, single: bool) -> Regime:
    """How the policy generates between steps: no graph, a cache, scores of the last position in fp32."""
    return regime._replace(
        training=False, trainable="none", checkpointing="none", accumulates=False, stage="", reference="none",
        loss="none", logits="last", generates=True, outputs_to_full=True, cache=None, single=single, dropout=False,
        mask="none", offload_saved=False, scaler=False,
    )  # fmt: skip


def generation_dimensions(at: Dimensions, batches: int) -> Dimensions:
    """All rows at once: their prompts, and the completions in the cache."""
    completion = min(at.scored or at.length - 1, at.length - 1)
    return Dimensions(at.batch * batches, max(at.length - completion, 1), max(completion - 1, 0), at.window)


def score_bytes(arch: Architecture, online: Online, at: Dimensions) -> int:
    """Scores of every generated token over the vocabulary, once as a list and once stacked."""
    return 2 * FULL * arch.vocab * at.batch * (at.cached + 1) if online.scores else 0


def cast_bytes(arch: Architecture, regime: Regime) -> int:
    """Half-precision copies of the linears that train in fp32, which a forward under autocast keeps to its end."""
    if not regime.autocast or regime.itemsize != FULL or regime.trainable != "all":
        return 0
    parts = inventory(arch)
    matrices = (weight for kind in parts.layers for weight in parts.kinds[kind].weights if weight.role == "linear")
    return HALF * (sum(weight.numel for weight in matrices) + arch.vocab * arch.hidden)
