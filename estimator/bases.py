"""Frozen bases under adapters: the packed formats that peft can train over, and what to use in place of the others."""

from estimator.catalogue import weight_format
from estimator.errors import EstimatorError

TRAINABLE = ("bitsandbytes-4bit", "bitsandbytes-8bit", "gptq", "awq", "hqq")
"""Schemes with a backward through their linear (peft 0.21, tuners/lora; transformers' ``is_trainable``)."""


def check_base(name: str) -> None:
    """Raise for a base that adapters cannot be trained over."""
    found = weight_format(name)
    if found.scheme in (*TRAINABLE, "plain"):
        return
    kind = f"GGUF type {found.name}" if found.scheme == "gguf" else found.name
    raise EstimatorError(
        f"adapters cannot be trained over a base in {kind}: use nf4, gptq, awq, int8, or 16-bit weights",
        f"{kind} 格式的权重不能作为适配器训练的基座：请改用 nf4、gptq、awq、int8 或 16 位权重",
        "weight_format",
    )
