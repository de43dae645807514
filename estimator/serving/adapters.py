"""What serving adds to a model: slots for LoRA adapters, and a draft model for speculative decoding."""

from functools import lru_cache

from estimator.architecture import Architecture, Weight
from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.serving.kv_sizes import layer_caches
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import rank_weights

DEFAULT_RANK = 16
"""vLLM's max_lora_rank."""

ROW_PARALLEL = ("o_proj", "down_proj", "out_proj", "shared.down_proj")
HALF = 2

WITHOUT_MODEL = ("ngram", "[ngram]", "mtp", "eagle", "eagle3", "medusa", "suffix")
"""Speculation that loads no second model, or only a head."""


@lru_cache(maxsize=256)
def slots_bytes(arch: Architecture, slots: int, rank: int, tensor: int) -> int:
    """Both matrices of every linear and of the head, for each slot, in 16 bit (vllm lora/layers)."""
    if not slots:
        return 0
    found = inventory(arch)
    width = sum(_width(weight.part, weight.shape, tensor) * times for weight, times in _linears(arch))
    head = arch.hidden + arch.vocab // tensor
    return slots * rank * (width + head) * HALF if found.layers else 0


def _linears(arch: Architecture) -> list[tuple[Weight, int]]:
    found = inventory(arch)
    return [
        (weight, found.layers.count(index))
        for index in set(found.layers)
        for weight in found.kinds[index].weights
        if weight.role == "linear" and weight.part != "router" and len(weight.shape) == 2
    ]


def _width(part: str, shape: tuple[int, ...], tensor: int) -> int:
    outputs, inputs = shape
    return inputs // tensor + outputs if part in ROW_PARALLEL else inputs + outputs // tensor


def adapter_slots(plan: Plan) -> int:
    """Bytes of the slots that the run asks for."""
    return slots_bytes(plan.arch, plan.serving.lora_slots, plan.rank or DEFAULT_RANK, plan.tensor)


def draft_of(plan: Plan) -> tuple[int, int]:
    """Bytes of a draft model's weights on one rank, and of one token in its cache."""
    name = plan.serving.draft_model
    if not name or name.lower() in WITHOUT_MODEL:
        return 0, 0
    try:
        arch = find_model(name).architecture
    except EstimatorError as error:
        raise EstimatorError(
            f"serving.draft_model: {error.message}", f"serving.draft_model：{error.message_zh}", "serving.draft_model"
        ) from None
    fmt = find_model(name).weight_format
    tensor = plan.tensor if arch.heads % plan.tensor == 0 else 1
    token = sum(cache.layers * cache.token for cache in layer_caches(arch, plan.kv_dtype, tensor))
    return rank_weights(arch, fmt, plan.itemsize, tensor, packs_experts=True).bytes, token
