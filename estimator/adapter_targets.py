"""Which linears' adapters peft 0.21 moves to the experts' stacked tensors (its transformers_weight_conversion.py).

transformers 5 keeps the experts as two 3-D parameters. For the types that it converts from older checkpoints, peft
takes ``gate_proj``, ``up_proj`` and ``down_proj`` among the targets as names of the experts' former linears: it adapts
the stacked tensors, and the dense and shared blocks whose linears really have these names go without.
"""

from estimator.architecture import Architecture
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.step.adapters import targeted

MIXTRAL = frozenset({"mixtral", "minimax", "minimax_m2"})
QWEN = frozenset({
    "afmoe", "deepseek_v2", "deepseek_v3", "deepseek_v32", "dots1", "ernie4_5_moe", "glm4_moe", "glm4_moe_lite",
    "glm_moe_dsa", "glm4v_moe_text", "longcat_flash", "solar_open", "mellum", "qwen3_moe", "beam", "qwen3_next",
    "hunyuan_v1_moe", "flex_olmo", "olmoe", "sarvam_mla", "exaone_moe", "cohere2_moe",
})  # fmt: skip
"""Types that transformers 5.24 converts in Mixtral's and in Qwen 2-MoE's way (conversion_mapping.py)."""

MAMBA = frozenset({"mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h"})
"""Types whose ``out_proj`` peft refuses to adapt: their fused kernel reads its weight directly."""

REFUSED = "out_proj"
"""Named among the moved ones, so that it goes without."""

STRING_FRAMEWORKS = ("trl",)
"""Frameworks that hand the word "all-linear" to peft; the others list the linears themselves."""


def moved(arch: Architecture, targets: str | tuple[str, ...], framework: str | None) -> tuple[str, ...]:
    """The names whose adapters go to the experts, or none."""
    if arch.model_type in MAMBA and isinstance(targets, str):
        return (REFUSED,)
    gate, up, down = ("w1", "w3", "w2") if arch.model_type in MIXTRAL else ("gate_proj", "up_proj", "down_proj")
    if arch.experts is None or arch.model_type not in MIXTRAL | QWEN:
        return ()
    if targets == "all-linear" and framework in STRING_FRAMEWORKS:
        return ("gate", gate, up, down)
    named = targets if isinstance(targets, tuple) else linears(arch, targets)
    found = tuple(name for name in ("gate", gate, up, down) if name in {word.rsplit(".", 1)[-1] for word in named})
    if (gate in found) != (up in found):
        raise EstimatorError(
            f"peft adapts {gate} and {up} of {arch.model_type} only together: its experts hold them in one tensor",
            f"{arch.model_type} 的专家把 {gate} 与 {up} 合并为一个张量，peft 只能同时适配两者",
            "adapter.targets",
        )
    return found


def linears(arch: Architecture, targets: str) -> set[str]:
    """The names of the linears that a preset of targets takes."""
    weights = (weight for kind in inventory(arch).kinds for weight in kind.weights if weight.role == "linear")
    names = (weight.name.removesuffix(".weight") for weight in weights if weight.part != "router")
    return {name.rsplit(".", 1)[-1] for name in names if targeted(targets, name)}
