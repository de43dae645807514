"""Small models for the tests of methods, and their estimates by phase."""

from typing import Any

from estimator.estimate import estimate
from estimator.schema import PerGpu, Run

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "model": LLAMA, "framework": "transformers", "task": "train", "stage": "sft", "method": "full", "precision": "bf16",
    "autocast": False, "micro_batch": 2, "seq_len": 512, "grad_accum": 1, "gradient_checkpointing": "none",
    "attention": "sdpa", "loss": "standard", "outputs_kept": False, "gradient_clipping": True,
    "zero_grad_to_none": True, "optimizer": "adamw", "optimizer_impl": "fused",
}  # fmt: skip
LORA: dict[str, Any] = {
    "method": "lora",
    "autocast": True,
    "adapter": {"rank": 16, "targets": "all-linear", "dtype": "fp32"},
}


def per_gpu(**changes: Any) -> PerGpu:
    """The estimate of a small Llama, run as ``PLAIN`` says but for ``changes``."""
    answer = estimate(Run.model_validate(PLAIN | changes)).per_gpu
    assert answer is not None
    return answer


def phases(answer: PerGpu) -> dict[str, int]:
    """Live tensor bytes by phase."""
    around = sum(block.bytes for block in answer.at_peak if block.item in ("workspace", "allocator_rounding"))
    return {phase.phase: phase.allocated_peak - around for phase in answer.phases}


def live(**changes: Any) -> int:
    """Live tensor bytes at the peak."""
    found = phases(per_gpu(**changes))
    return max(size for phase, size in found.items() if phase != "load")


def block(item: str, **changes: Any) -> int:
    """Bytes of one item of the breakdown at the peak."""
    return sum(found.bytes for found in per_gpu(**changes).at_peak if found.item == item)
