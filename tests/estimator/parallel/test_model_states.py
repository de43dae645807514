"""Model states under ZeRO against DeepSpeed's own estimators, whose formulas are written out below.

DeepSpeed 0.19.8, deepspeed/runtime/zero/stage_1_and_2.py ``estimate_zero2_model_states_mem_needs`` and stage3.py
``estimate_zero3_model_states_mem_needs``, with ``additional_buffer_factor`` 1 and ``zero_init``.
"""

from typing import Any

import pytest

from estimator.architecture import from_config
from estimator.estimate import estimate
from estimator.inventory import inventory
from estimator.schema import Estimate, Run
from estimator.step.program import rounded

MODEL = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024, "tie_word_embeddings": False,
}  # fmt: skip
PARAMETERS = inventory(from_config(MODEL)).numel
COUNTER = 512
"""The fused AdamW's step counter, a block that DeepSpeed's formulas leave out."""
TABLES = 1024
"""The model's own buffers: rotary frequencies, twice."""


def zero2(cards: int) -> int:
    """16-bit parameters whole; fp32 copies, moments, gradients in both types shared."""
    return 2 * PARAMETERS + 18 * PARAMETERS // cards


def zero3(cards: int) -> int:
    """All of it shared but one type of gradients; without the largest layer."""
    return 18 * PARAMETERS // cards


def answer(zero: int, cards: int, **fields: Any) -> Estimate:
    base = {
        "model": MODEL, "task": "train", "stage": "sft", "method": "full", "framework": "deepspeed",
        "precision": "deepspeed-bf16", "optimizer": "adamw", "optimizer_impl": "fused", "micro_batch": 1, "seq_len": 64,
        "gpu_count": cards, "gradient_clipping": False,
        "parallel": {"engine": "deepspeed", "data": cards, "zero": zero},
    }  # fmt: skip
    return estimate(Run.model_validate(base | fields))


def stored(found: Estimate, *items: str) -> int:
    assert found.per_gpu is not None
    return sum(block.bytes for block in found.per_gpu.at_peak if block.item in items)


def step_of(found: Estimate) -> int:
    assert found.per_gpu is not None
    (peak,) = (one.allocated_peak for one in found.per_gpu.phases if one.phase == "optimizer_step")
    return peak - stored(found, "workspace")


@pytest.mark.parametrize("cards", [2, 4, 8, 16])
def test_zero_2_states_are_deepspeeds_to_the_byte(cards: int) -> None:
    """Its 18 bytes are 12 of copies and moments, which always lie there, and 6 of gradients, which come and go."""
    found, gradients = answer(2, cards), 6 * PARAMETERS // cards
    states = zero2(cards) - gradients - 2 * PARAMETERS
    assert states == 12 * PARAMETERS // cards
    assert stored(found, "master_weights") == rounded(states // 3)
    assert stored(found, "optimizer_states") == 2 * rounded(states // 3) + COUNTER
    assert 0 <= stored(found, "weights") - 2 * PARAMETERS <= TABLES
    assert zero2(cards) <= step_of(found) <= zero2(cards) + 2 * PARAMETERS // cards + 2 * 512 * 1024 + 4096


@pytest.mark.parametrize("cards", [2, 4, 8, 16])
def test_zero_3_states_are_deepspeeds_to_the_byte(cards: int) -> None:
    found, part = answer(3, cards), PARAMETERS // cards
    states = zero3(cards) - (2 + 4) * part
    assert stored(found, "master_weights") == rounded(states // 3)
    assert stored(found, "optimizer_states") == 2 * rounded(states // 3) + COUNTER
    assert step_of(found) >= zero3(cards)


@pytest.mark.parametrize(("zero", "parameters", "each"), [(2, "none", 16), (3, "none", 16), (3, "cpu", 18)])
def test_offloaded_states_are_deepspeeds_and_a_16_bit_buffer(zero: int, parameters: str, each: int) -> None:
    """Its code keeps 2 bytes an element more on the host than its formula: gradients or parameters on their way."""
    host = answer(zero, 8, offload={"optimizer": "cpu", "parameters": parameters}).host
    assert host is not None
    assert host.ram == pytest.approx((each + 2) * PARAMETERS, rel=5e-4)
