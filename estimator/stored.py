"""Models published in a quantised format of their own: DeepSeek-V3 in fp8, gpt-oss in mxfp4, Kimi-K2 with 4-bit experts."""

from estimator.catalogue import ModelMatch
from estimator.schema import Run

NATIVE = {"fp8": "fp8", "mxfp4": "mxfp4", "int4": "int4-experts", "int4-experts": "int4-experts", "nvfp4": "nvfp4"}
"""Type of the published weights and the weight format that it is."""

IN_WORDS = {"int4-experts": ("4-bit experts", "4 位专家")}


def native_format(model: ModelMatch) -> str | None:
    """The format that the model's own checkpoint has, None where it is plain."""
    stated = model.weight_format if model.how == "config" else model.default_dtype
    return NATIVE.get(stated or "")


def dequantised_note(run: Run, model: ModelMatch) -> tuple[str, str] | None:
    """Training reads such a checkpoint as 16 bit: one sentence in both languages, None where it does not apply."""
    native = native_format(model)
    if native is None or run.task != "train":
        return None
    english, chinese = IN_WORDS.get(native, (native, native))
    if run.weight_format:
        return (
            f"the weights are published in {english}: they are turned to 16 bit before they are packed as "
            f"{run.weight_format}",
            f"权重以 {chinese} 发布：先转为 16 位，再量化为 {run.weight_format}",
        )
    return (
        f"the weights are published in {english}, which does not train: transformers turns them to 16 bit",
        f"权重以 {chinese} 发布，无法直接训练：transformers 会先反量化为 16 位",
    )
