"""Evaluation between training steps: a forward without gradients beside the optimizer states, with its loss.

Asked for by ``details.eval_batch``, since frameworks evaluate with a batch of their own (transformers: 8) and full
logits then cost more than the step. Traced with transformers 5.24 (a Llama, batch 8, four precisions): the peak is in
the loss, 10 bytes per token and vocabulary entry with 16-bit logits (2 + 4 in fp32 + 4 of the log-softmax), 8 with
fp32 ones; the cache that evaluation fills, the last hidden states and autocast's copies of trainable fp32 weights
stand beside.
"""

from estimator.caches import at_the_end
from estimator.choices import NONE
from estimator.schema import Run
from estimator.setting import Peak, Setting, peak_of
from estimator.stages.generation import cast_bytes
from estimator.step.losses import TILE_TOKENS, TILE_VOCAB
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF

GIB = 1 << 30


def evaluation_note(run: Run, setting: Setting, peak: Peak) -> tuple[int, str, str] | None:
    """Batch and sentences where the evaluation that was asked for needs more than the step; else None."""
    batch = (run.details or {}).get("eval_batch")
    if not setting.regime.training or not isinstance(batch, int) or batch < 1:
        return None
    needed = evaluation_bytes(setting, peak, batch)
    if needed <= peak.live:
        return None
    size = f"{needed / GIB:.1f} GiB"
    return (
        batch,
        f"evaluation with a batch of {batch} peaks at {size} allocated, more than the training step",
        f"评估时批大小 {batch} 的峰值为已分配 {size}，高于训练步骤",
    )


def evaluation_bytes(setting: Setting, peak: Peak, batch: int) -> int:
    """Live tensor bytes at the peak of an evaluation forward with ``batch`` rows of the training length."""
    regime = _forward_regime(setting.regime, batch)
    at = setting.at._replace(batch=batch, cached=0)
    forward = setting._replace(regime=regime, at=at, optimizer=NONE, copies=1)
    traced = peak_of(forward)
    working = traced.phases["prefill"] - traced.base.total
    loss = at_the_end(forward, traced).bytes + _loss_bytes(setting, at.batch * at.length)
    return peak.base.total + cast_bytes(setting.arch, setting.regime) + max(working, loss)


def _forward_regime(regime: Regime, batch: int) -> Regime:
    return regime._replace(
        training=False,
        trainable="none",
        adapter=None,
        checkpointing="none",
        accumulates=False,
        logits="last",
        generates=False,
        cache=None,
        outputs_to_full=False,
        single=batch == 1,
    )


def _loss_bytes(setting: Setting, tokens: int) -> int:
    """Logits in the loss, and the hidden states that they are made of."""
    arch, regime = setting.arch, setting.regime
    half = regime.autocast or regime.itemsize == HALF
    hidden = tokens * arch.hidden * regime.itemsize
    if regime.loss == "chunked":
        return hidden + min(tokens, TILE_TOKENS) * TILE_VOCAB * (HALF if half else FULL)
    return hidden + tokens * arch.vocab * (10 if half else 8)
