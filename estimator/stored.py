"""Models published in a quantised format: DeepSeek-V3 in fp8, gpt-oss in mxfp4, Kimi-K2 with 4-bit experts."""

from estimator.catalogue import ModelMatch
from estimator.schema import Run

NATIVE = {"fp8": "fp8", "mxfp4": "mxfp4", "int4": "int4-experts", "int4-experts": "int4-experts", "nvfp4": "nvfp4"}
"""Type of the published weights and the weight format that it is."""

WHAT = {"int4-experts": ("the experts are published in 4 bit", "专家以 4 位发布")}


def native_format(model: ModelMatch) -> str | None:
    """The format that the model's own checkpoint has, None where it is plain."""
    stated = model.weight_format if model.how == "config" else model.default_dtype
    return NATIVE.get(stated or "")


def dequantised_note(run: Run, model: ModelMatch) -> tuple[str, str] | None:
    """Training reads such a checkpoint as 16 bit: one sentence in both languages, None where it does not apply."""
    native = native_format(model)
    if native is None or run.task != "train":
        return None
    english, chinese = WHAT.get(native, (f"the weights are published in {native}", f"权重以 {native} 发布"))
    if run.weight_format:
        return (
            f"{english}: they are turned to 16 bit before they are packed as {run.weight_format}",
            f"{chinese}：先转为 16 位，再量化为 {run.weight_format}",
        )
    return (
        f"{english}, which does not train: transformers turns them to 16 bit",
        f"{chinese}，无法直接训练：transformers 会先反量化为 16 位",
    )
