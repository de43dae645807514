"""What serving adds to a model: slots for LoRA adapters, and a draft model for speculative decoding."""

from functools import lru_cache

from estimator.architecture import Architecture, Weight
from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.serving.kv_sizes import ATTENDS, layer_caches
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import rank_weights

DEFAULT_RANK = 16
"""vLLM's max_lora_rank."""

ROW_PARALLEL = ("o_proj", "down_proj", "out_proj", "shared.down_proj")
HALF = 2

WITHOUT_MODEL = ("ngram", "[ngram]", "eagle", "eagle3", "medusa", "suffix")
"""Speculation that loads no second model, or only a small head of its own file."""
BUILT_IN = "mtp"
"""The checkpoint's own block that predicts the tokens after the next."""


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


def own_block(plan: Plan) -> tuple[int, int]:
    """One more layer like the last that attends, and the projection that joins its two inputs (DeepSeek-V3, Qwen3.5).

    Qwen3.6-27B's has 424,699,392 parameters, as published.
    """
    arch = plan.arch
    last = max((n for n, kind in enumerate(arch.layer_types) if kind in ATTENDS), default=0)
    mlps = arch.mlp_types[last : last + 1]
    one, two = (
        arch._replace(layers=count, layer_types=arch.layer_types[last : last + 1] * count, mlp_types=mlps * count,
                experts=arch.experts._replace(dense_first_layers=0, dense_layers=(), every=1) if arch.experts else None)
        for count in (1, 2)
    )  # fmt: skip
    sizes = [rank_weights(each, plan.fmt, plan.itemsize, plan.tensor, packs_experts=True).bytes for each in (one, two)]
    token = sum(cache.layers * cache.token for cache in layer_caches(one, plan.kv_dtype, plan.tensor))
    return sizes[1] - sizes[0] + 2 * arch.hidden * arch.hidden * HALF, token


def adapter_slots(plan: Plan) -> int:
    """Bytes of the slots that the run asks for."""
    return slots_bytes(plan.arch, plan.serving.lora_slots, plan.rank or DEFAULT_RANK, plan.tensor)


def draft_of(plan: Plan) -> tuple[int, int]:
    """Bytes of a draft model's weights on one rank, and of one token in its cache."""
    name = plan.serving.draft_model
    if not name or name.lower() in WITHOUT_MODEL:
        return 0, 0
    if name.lower().endswith(BUILT_IN):
        return own_block(plan)
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
