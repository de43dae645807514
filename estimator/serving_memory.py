"""What transformers holds: weights, cache and buffers, read off the traced generation."""

from estimator.caches import at_the_end
from estimator.schema import PerGpu, ServingMemory
from estimator.setting import Peak, Setting

AT_WORK = ("activations", "logits_loss", "weight_casts", "other")


def serving_of(setting: Setting, peak: Peak, per_gpu: PerGpu) -> ServingMemory | None:
    """The figures of one generation, its cache as the last token finds it; None for training."""
    if setting.regime.training:
        return None
    at = setting.at
    cache = at_the_end(setting, peak)
    working = sum(block.bytes for block in per_gpu.at_peak if block.item in AT_WORK)
    return ServingMemory(
        weights_bytes=peak.base.weights.bytes,
        kv_bytes=cache.bytes,
        kv_bytes_per_token=float(cache.per_token),
        kv_tokens=at.batch * (at.length + at.cached) if cache.grown else 0,
        concurrency=float(at.batch),
        activation_peak_bytes=working,
    )
